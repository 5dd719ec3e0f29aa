// Runs one item through its stage: attempts, their time limit, and the report of a failure.
//
// Thread: owner. `run` never rejects.
import type { Clock } from '../core/base/clock.js';
import { WaitTimeoutError, ArgumentError, DeviceLostError } from '../core/base/errors.js';
import { badArgument, show } from '../core/base/arguments.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import type { Observable } from 'rxjs';
import { type ErrorPolicy, firstCause } from './error-policy.js';
import { type Lane, LaneTurn, type Slot } from './lane.js';
import { LaneAbort } from './lane-abort.js';
import type { Meter } from './meter.js';
import { isObservable, type Sink } from './observe.js';
import { setImmediate } from '../core/base/timers.js';
import { isTraced, type ItemMessage, itemTrace, tracePromise } from '../core/base/trace.js';

/** What a stage returns: a promise or an Observable. Arrays and strings, which RxJS would flatten silently, are not accepted. */
export type Staged<R> = PromiseLike<R> | Observable<R>;
/**
 * Processes one item on a lane. Returns a promise of the result, or an Observable of results. The results of an Observable are emitted as
 * they come; with a retry policy, they are emitted after the attempt has succeeded. A stage that returns neither fails with an
 * ArgumentError.
 */
export type Stage<T, R> = (item: T, lane: Lane) => Staged<R>;

export function checkStage(stage: unknown): void {
  if (typeof stage !== 'function') throw badArgument('stage', stage, `The stage (${show(stage)}) is not a function.`);
}

/** Why an attempt failed. */
interface Failure {
  readonly value: unknown;
}

/** How an item ended. */
export type Outcome = { readonly kind: 'done' } | { readonly kind: 'skipped' } | { readonly kind: 'failed'; readonly error: unknown };

export interface StageSettings<T, R> {
  readonly stage: Stage<T, R>;
  readonly policy: ErrorPolicy<T>;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Called before each attempt after the first one. */
  readonly onRetry: () => void;
  /** Called when an attempt exceeds its time limit; its operations may still run on the device. */
  readonly onLate: (slot: Slot) => void;
}

/** Takes a result of a turn. A receiver that cannot pass it on calls `turn.discard(value)`. */
export type Emit<R> = (value: R, turn: Pick<LaneTurn, 'discard'>) => void;

export class StagedItem<T, R> {
  readonly #settings: StageSettings<T, R>;
  readonly #item: T;
  readonly #number: number;
  readonly #slot: Slot;
  readonly #emit: Emit<R>;
  #attempt: LaneAbort | undefined;
  #isAborted = false;

  /** `emit` gets the results. */
  constructor(settings: StageSettings<T, R>, item: T, slot: Slot, emit: Emit<R>) {
    this.#settings = settings;
    this.#item = item;
    this.#number = settings.meter.nextItem();
    this.#slot = slot;
    this.#emit = emit;
  }

  /** Aborts the current attempt and prevents further ones. */
  abort(reason?: unknown): void {
    this.#isAborted = true;
    this.#attempt?.abort(reason);
  }

  async run(): Promise<Outcome> {
    const { policy, clock, onRetry } = this.#settings;
    for (let attempt = 1; ; attempt++) {
      const abort = new LaneAbort();
      this.#attempt = abort;
      const tries = (): Promise<Failure | undefined> => this.#try(attempt, abort);
      const error = await (isTraced(itemTrace) ? this.#traced(attempt, tries) : tries());
      if (error === undefined) return { kind: 'done' };
      if (this.#isAborted || this.#isDeviceGone(error.value)) return { kind: 'failed', error: error.value };
      try {
        if (attempt > policy.retries || !policy.when(error.value, attempt)) {
          if (!policy.isSkipping) return { kind: 'failed', error: error.value };
          policy.onSkip({ item: this.#item, reason: 'error', error: error.value });
          return { kind: 'skipped' };
        }
      } catch (thrown) {
        return { kind: 'failed', error: thrown };
      }
      onRetry();
      await pause(clock, policy.delayMs(attempt), abort);
      if (this.#isAborted) return { kind: 'failed', error: error.value };
    }
  }

  #traced(attempt: number, tries: () => Promise<Failure | undefined>): Promise<Failure | undefined> {
    const { index: lane, device } = this.#slot;
    const message: ItemMessage = { device: device.core.name, lane, item: this.#number, attempt };
    return tracePromise(itemTrace, message, tries, (failure) => failure?.value);
  }

  /** Undefined when the attempt succeeded. */
  async #try(number: number, abort: LaneAbort): Promise<Failure | undefined> {
    const { policy, stage, meter } = this.#settings;
    const turn = new LaneTurn(this.#slot, abort, number, meter);
    // If the attempt may be repeated, keep its results until it succeeds, so that no result is emitted twice.
    const held: R[] = [];
    const isHolding = policy.retries > 0;
    let isOver = false;
    let hasFailed = false;
    const give = (value: R): void => {
      if (isOver) return turn.discard(value);
      turn.checkResult(value);
      turn.give(value);
      if (isHolding) held.push(value);
      else this.#emit(value, turn);
    };
    const work = settle(() => stage(this.#item, turn), turn, abort, give);
    try {
      await (policy.stageTimeoutMs === undefined ? work : this.#withLimit(work, policy.stageTimeoutMs, abort));
      for (const value of held) this.#emit(value, turn);
      return undefined;
    } catch (error) {
      hasFailed = true;
      for (const value of held) turn.discard(value);
      return { value: firstCause(error) };
    } finally {
      isOver = true;
      // A stage that still runs may write to the arrays, for example from a pool's thread, so dispose them when it settles.
      const end = (): void => turn.end(hasFailed);
      if (policy.stageTimeoutMs === undefined) end();
      else work.then(end, end);
    }
  }

  async #withLimit(work: Promise<void>, limitMs: number, abort: LaneAbort): Promise<void> {
    let cancelTimer: (() => void) | undefined;
    const late = new Promise<never>((_, reject) => {
      cancelTimer = this.#settings.clock.after(limitMs, () => {
        const message = `The stage has not settled within stageTimeoutMs (${limitMs} ms) on lane ${this.#slot.index}.`;
        const error = new WaitTimeoutError('ERR_MILLRACE_TIMEOUT', message, limitMs, [], { device: this.#slot.device.core.name });
        reject(error);
        this.#settings.onLate(this.#slot);
        abort.abort(error);
      });
    });
    try {
      await Promise.race([work, late]);
    } finally {
      cancelTimer?.();
      work.catch(() => undefined);
    }
  }

  /** Whether the device is gone. Then every item would fail, so skipping or retrying would only consume the source. */
  #isDeviceGone(error: unknown): boolean {
    return error instanceof DeviceLostError || this.#slot.device.state !== 'open';
  }
}

/**
 * Resolves when the stage has passed all its results to `give` and the operations that its operators submitted have finished. Unsubscribes
 * from an Observable when the signal aborts.
 */
async function settle<R>(run: () => Staged<R>, turn: LaneTurn, abort: LaneAbort, give: (value: R) => void): Promise<void> {
  try {
    const staged: unknown = run();
    if (isPromiseLike<R>(staged)) {
      const value = await staged;
      if (turn.finished !== undefined) await turn.finished;
      give(value);
    } else if (isObservable<R>(staged)) {
      await drain(staged, give, abort);
      await turn.finished;
    } else {
      const message = `A stage must return a promise or an Observable, not ${describe(staged)}.`;
      throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: staged });
    }
  } catch (error) {
    await turn.tasksEnded(true);
    throw error;
  }
  if (turn.hasTasks) await turn.tasksEnded(false);
}

function drain<R>(values: Observable<R>, give: (value: R) => void, abort: LaneAbort): Promise<void> {
  return new Promise((resolve, reject) => {
    let subscription: { unsubscribe(): void } | undefined = undefined;
    let isOver = false;
    const finish = (end: () => void): void => {
      if (isOver) return;
      isOver = true;
      stopListening();
      end();
      subscription?.unsubscribe();
    };
    const giveUp = (): void => finish(() => reject(abort.signal.reason));
    const stopListening = abort.onAbort(giveUp);
    const sink: Pick<Sink<R>, 'next' | 'error' | 'complete'> = {
      next: (value) => {
        try {
          give(value);
        } catch (error) {
          finish(() => reject(error));
        }
      },
      error: (error) => finish(() => reject(error)),
      complete: () => finish(resolve),
    };
    subscription = values.subscribe(sink);
    if (isOver) subscription.unsubscribe();
    else if (abort.isAborted) giveUp();
  });
}

/** Resolves after the delay, or when the signal aborts. Without a delay the event loop turns once, so that attempts never hold it up. */
function pause(clock: Clock, delayMs: number, abort: LaneAbort): Promise<void> {
  if (abort.isAborted) return Promise.resolve();
  if (delayMs === 0) return new Promise((resolve) => void setImmediate(resolve));
  return new Promise((resolve) => {
    const end = (): void => {
      cancelTimer();
      stopListening();
      resolve();
    };
    const cancelTimer = clock.after(delayMs, end);
    const stopListening = abort.onAbort(end);
  });
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  const name = typeof value === 'object' ? (value.constructor?.name ?? 'plain object') : typeof value;
  return `${/^[AEIO]/i.test(name) ? 'an' : 'a'} ${name}`;
}
