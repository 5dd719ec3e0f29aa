// `batchFor`: collects small items into batches, so that one launch processes many.
import type { OperatorFunction, SchedulerLike, Subscription } from 'rxjs';
import { checkInteger, refuseSurplus } from '../core/base/arguments.js';
import { checkMilliseconds } from './error-policy.js';
import { checkGiven, checkOptionsGiven } from './missing-option.js';
import { isTimeVirtual, observable, rx } from './observe.js';
import { realClock } from '../core/base/clock.js';
import { checkOptionNames } from '../core/base/option-names.js';

/** When `batchFor` emits. */
export interface BatchLimits {
  /** The most values in a batch, at least 1. */
  readonly maxItems: number;
  /** Milliseconds that the first value of a batch waits for more, at least 0. */
  readonly maxWaitMs: number;
  /**
   * The scheduler that measures `maxWaitMs`. Default: the time of a test clock or RxJS `TestScheduler` that runs, else the process's timers,
   * which fake timers of a test do not replace; with `asyncScheduler` they do.
   */
  readonly scheduler?: SchedulerLike;
}

/** Runs its work once, which takes no state. */
const defaultScheduler = {
  schedule(work: () => void, delay: number): Subscription {
    const { asyncScheduler, Subscription } = rx();
    if (isTimeVirtual()) return asyncScheduler.schedule(work, delay);
    return new Subscription(realClock.after(delay, work));
  },
};

const EXAMPLE = 'batchFor({ maxItems: 64, maxWaitMs: 2 })';

/**
 * Collects values, and emits them as an array when there are `maxItems`, or `maxWaitMs` after the first of them. Emits the rest when the
 * source completes. Unlike RxJS's `bufferTime`, it emits no empty arrays. Throws ArgumentError for a bad limit.
 * @example requests$.pipe(batchFor({ maxItems: 64, maxWaitMs: 2 }), overlapMap(device, { overflow: 'fail' }, inferBatch))
 */
export function batchFor<T>(limits: BatchLimits): OperatorFunction<T, readonly T[]> {
  if (arguments.length > 1) refuseSurplus('batchFor', arguments, 1);
  checkOptionsGiven(limits, 'batchFor', EXAMPLE);
  checkOptionNames(limits, ['maxItems', 'maxWaitMs', 'scheduler']);
  const { maxItems, maxWaitMs, scheduler = defaultScheduler } = limits;
  checkGiven('maxItems', maxItems, 'the largest number of values in a batch, a whole number of at least 1', EXAMPLE);
  checkGiven('maxWaitMs', maxWaitMs, 'how many milliseconds the first value of a batch waits for further values, at least 0', EXAMPLE);
  checkInteger('maxItems', maxItems, 1);
  checkMilliseconds('maxWaitMs', maxWaitMs);
  return (source) =>
    observable<readonly T[]>((sink) => {
      let batch: T[] = [];
      let timer: Subscription | undefined;
      const flush = (): void => {
        timer?.unsubscribe();
        timer = undefined;
        const full = batch;
        batch = [];
        if (full.length > 0) sink.next(full);
      };
      const subscription = source.subscribe({
        next: (value) => {
          batch.push(value);
          if (batch.length >= maxItems) flush();
          else timer ??= scheduler.schedule(flush, maxWaitMs);
        },
        error: (error: unknown) => sink.error(error),
        complete: () => {
          flush();
          sink.complete();
        },
      });
      return () => {
        timer?.unsubscribe();
        subscription.unsubscribe();
      };
    });
}
