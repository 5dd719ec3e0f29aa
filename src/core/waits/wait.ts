// Host waits: a promise for a point, with an AbortSignal and a timeout. Giving up a wait gives up nothing else: the
// work goes on and keeps its memory.
import { addAbortListener } from 'node:events';
import { AbortError, ArgumentError, WaitTimeoutError } from '../base/errors.js';
import type { Stuck } from './stuck.js';

/** Every host wait takes these. Aborting a wait never cancels submitted work and never frees memory the device still uses. */
export interface WaitOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** setTimeout fires at once beyond this. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1;

/**
 * `promise`, given up when the signal aborts or the time is over. `withdrawals` are called when it is
 * given up. `waitingFor` names what is waited for, in the words of an error message; `look` tells why it has not come.
 */
export async function waitWith<T>(
  promise: Promise<T>,
  opts: WaitOptions | undefined,
  waitingFor: string,
  withdrawals: readonly (() => void)[] = [],
  look: () => Stuck = () => NOTHING,
): Promise<T> {
  const { signal, timeoutMs } = checkWaitOptions(opts);
  if (signal === undefined && timeoutMs === undefined) return promise;
  let giveUp: (error: Error) => void = () => undefined;
  const givenUp = new Promise<never>((_, reject) => {
    giveUp = (error) => {
      reject(error);
      for (const withdraw of withdrawals) withdraw();
    };
  });
  const listening =
    signal && (signal.aborted ? giveUp(new AbortError(signal)) : addAbortListener(signal, () => giveUp(new AbortError(signal))));
  const timer =
    timeoutMs !== undefined && timeoutMs <= MAX_TIMEOUT_MS
      ? setTimeout(() => {
          const { streams, message } = look();
          const text = `The wait for ${waitingFor} took longer than its timeout (${timeoutMs} ms)${message && `: ${message}`}.`;
          giveUp(new WaitTimeoutError('ERR_MILLRACE_TIMEOUT', text, timeoutMs, streams));
        }, timeoutMs)
      : undefined;
  try {
    return await Promise.race([givenUp, promise]);
  } finally {
    clearTimeout(timer);
    if (listening) listening[Symbol.dispose]();
    // The one that lost the race rejects unheard.
    promise.catch(() => undefined);
  }
}

const NOTHING: Stuck = { streams: [], message: '' };

/** The options with a second signal. */
export function withSignal(opts: WaitOptions | undefined, signal: AbortSignal): WaitOptions {
  const given = checkWaitOptions(opts).signal;
  return { ...opts, signal: given === undefined ? signal : AbortSignal.any([given, signal]) };
}

export function checkWaitOptions(opts: WaitOptions | undefined): WaitOptions {
  if (opts === undefined) return {};
  const { signal, timeoutMs } = opts;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', 'The option signal is not an AbortSignal.', { argument: 'signal', value: signal });
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
    throw new ArgumentError(
      'ERR_MILLRACE_ARGUMENT',
      `The option timeoutMs (${String(timeoutMs)}) is not a number of milliseconds of at least 0.`,
      {
        argument: 'timeoutMs',
        value: timeoutMs,
        limit: 0,
      },
    );
  }
  return opts;
}
