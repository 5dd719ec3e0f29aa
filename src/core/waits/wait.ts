// Host waits: a promise with an AbortSignal and a timeout. Giving up a wait does not cancel submitted work and frees no memory.
import { badArgument, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { type Clock, realClock } from '../base/clock.js';
import { AbortError, WaitTimeoutError } from '../base/errors.js';
import { isAbortSignal, onAbort } from './abort-listeners.js';
import type { WaitDiagnosis } from './wait-diagnosis.js';
import { performance } from '../base/timers.js';

/** Limits of a host wait. Giving up a wait never cancels submitted work and never frees memory that the device still uses. */
export interface WaitOptions {
  /** If it aborts, the wait is given up with an AbortError. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds, at least 0, after which the wait is given up with a WaitTimeoutError. Without it, and from 2^31 on, there is no limit.
   */
  readonly timeoutMs?: number;
}

/** A hidden option: a second signal, of the library itself. */
const ALSO: unique symbol = Symbol('also');

/** A hidden option: the timeout that the caller gave, where `timeoutMs` is what is left of it. */
const GIVEN: unique symbol = Symbol('given');

interface Signals extends WaitOptions {
  readonly [ALSO]?: AbortSignal;
  readonly [GIVEN]?: number;
}

/** The options with the time that is left of a wait that began at `sinceMs`. Errors name the timeout that was given. */
export function rest(opts: WaitOptions | undefined, sinceMs: number): WaitOptions | undefined {
  const { timeoutMs, [GIVEN]: given = timeoutMs, ...others } = checkWaitOptions(opts) as Signals;
  if (timeoutMs === undefined) return opts;
  const left = Math.max(0, timeoutMs - (performance.now() - sinceMs));
  return { ...others, timeoutMs: left, ...(given !== undefined && { [GIVEN]: given }) };
}

/** The longest delay of setTimeout, which fires at once beyond it. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1;

/**
 * Follows `promise`, and gives the wait up when the signal aborts or the timeout passes. `withdrawals` are called when it is given up.
 * `waitingFor` names the awaited object in the error message, and `look` finds out why the wait has not ended.
 */
export async function waitWith<T>(
  promise: Promise<T>,
  opts: WaitOptions | undefined,
  waitingFor: string,
  withdrawals: readonly (() => void)[] = [],
  look: () => WaitDiagnosis = () => NOTHING,
  clock: Clock = realClock,
): Promise<T> {
  const { signal, timeoutMs, [ALSO]: also, [GIVEN]: givenMs = timeoutMs ?? 0 } = checkWaitOptions(opts) as Signals;
  if (signal === undefined && timeoutMs === undefined && also === undefined) return promise;
  let giveUp: (error: Error) => void = () => undefined;
  const givenUp = new Promise<never>((_, reject) => {
    giveUp = (error) => {
      reject(error);
      for (const withdraw of withdrawals) withdraw();
    };
  });
  const listening = [signal, also].map((each) => each && abortable(each, giveUp));
  const cancelTimer =
    timeoutMs !== undefined && timeoutMs <= MAX_TIMEOUT_MS
      ? clock.after(timeoutMs, () => {
          const { streams, message } = look();
          const text = `The wait for ${waitingFor} took longer than its timeout (${givenMs} ms)${message && `: ${message}`}.`;
          giveUp(new WaitTimeoutError('ERR_MILLRACE_TIMEOUT', text, givenMs, streams));
        })
      : undefined;
  try {
    return await Promise.race([givenUp, promise]);
  } finally {
    cancelTimer?.();
    for (const stop of listening) stop?.();
    // If `promise` rejects after the race, the rejection is handled.
    promise.catch(() => undefined);
  }
}

const NOTHING: WaitDiagnosis = { streams: [], message: '' };

function abortable(signal: AbortSignal, giveUp: (error: Error) => void): () => void {
  if (!signal.aborted) return onAbort(signal, () => giveUp(new AbortError(signal)));
  giveUp(new AbortError(signal));
  return () => undefined;
}

/** The options with a second signal. `AbortSignal.any` would leave an entry of each wait in the caller's signal. */
export function withSignal(opts: WaitOptions | undefined, signal: AbortSignal): WaitOptions {
  const also: Signals = { ...checkWaitOptions(opts), [ALSO]: signal };
  return also;
}

/** Checks the options of a call that waits, their names included. `also`: its further options, which it checks by itself. */
export function checkWaitCall(opts: WaitOptions | undefined, ...also: readonly string[]): WaitOptions {
  if (opts !== undefined) checkOptionNames(opts, ['signal', 'timeoutMs', ...also]);
  return checkWaitOptions(opts);
}

/** Checks the values of wait options, which may be among other options. */
export function checkWaitOptions(opts: WaitOptions | undefined): WaitOptions {
  if (opts === undefined) return {};
  if (typeof opts !== 'object' || opts === null) throw badArgument('opts', opts, `The options (${show(opts)}) are not an object.`);
  const { signal, timeoutMs } = opts;
  if (signal !== undefined && !isAbortSignal(signal))
    throw badArgument('signal', signal, `The option signal (${show(signal)}) is not an AbortSignal.`);
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0))
    throw badArgument(
      'timeoutMs',
      timeoutMs,
      `The option timeoutMs (${show(timeoutMs)}) is not a number of milliseconds of at least 0.`,
      0,
    );
  return opts;
}
