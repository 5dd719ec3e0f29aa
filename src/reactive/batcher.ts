// `createBatcher`: collects requests of a service into batches, so that one launch serves many.
// Thread: owner.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import { ArgumentError } from '../core/base/errors.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import { checkMilliseconds } from './error-policy.js';
import { checkQueueMs, checkServicePolicy, type Lanes, LaneService, type LanesOptions } from './lanes.js';
import { checkGiven, checkOptionsGiven } from './missing-option.js';
import { isObservable, rx } from './observe.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { SERVICE_OPTIONS } from './option-names.js';
import { checkLayout, type Devices } from './lane-pool.js';
import { checkStage, type Stage } from './stage.js';

/** Options of `createBatcher` with a fixed limit for the size of a batch. */
export interface FixedBatches extends BatcherQueue {
  /** The most requests in a batch, at least 1. */
  readonly maxItems: number;
  /** Milliseconds that the first request of a batch waits for more, from its call, at least 0. A full batch does not wait. */
  readonly maxWaitMs: number;
  /** Only in `LatencyBatches`. */
  readonly targetLatencyMs?: undefined;
}

/** Options of `createBatcher` that adapt the size of the batches to the duration of the stage. */
export interface LatencyBatches extends BatcherQueue {
  /**
   * The target for the milliseconds from the call of `run` to its answer, above 0: 95 of 100 requests should not exceed it. The limit of a
   * batch grows while the stage takes less than its part of the target (half with one lane, N / (N + 1) with N lanes) and shrinks when the
   * stage takes more. A batch waits for more requests as long as the target allows. If requests come faster than the stage answers them,
   * they wait in the queue and exceed the target; `maxQueue` and `maxQueueMs` limit the queue.
   */
  readonly targetLatencyMs: number;
  /** The most requests in a batch. Default: `maxQueue`. */
  readonly maxItems?: number;
  /** The longest wait of a batch in milliseconds. Default: as long as the target allows. */
  readonly maxWaitMs?: number;
}

/** Options of `createBatcher`: either the size and the wait of a batch, or a target for the latency. */
export type BatcherOptions = FixedBatches | LatencyBatches;

/** Options of every `createBatcher`. */
export interface BatcherQueue extends LanesOptions {
  /** The most requests that wait, at least `maxItems`; another one is refused with a LimitError. */
  readonly maxQueue: number;
}

/**
 * Makes lanes that serve requests in batches, so that one launch serves many small items. The stage gets up to `maxItems` items and
 * returns, by a promise or as the last value of an Observable, an array or typed array with one result per item in the same order. An Error
 * among the results rejects its request alone. If the stage fails, or returns another number of results (ArgumentError), all requests of the
 * batch reject. Throws as `createLanes` does.
 * @example const batcher = createBatcher(device, { maxItems: 64, maxWaitMs: 2, maxQueue: 1000 }, inferBatch);
 * @example const batcher = createBatcher(device, { targetLatencyMs: 20, maxQueue: 1000 }, inferBatch);
 */
export function createBatcher<T, R>(device: Devices, opts: BatcherOptions, stage: Stage<readonly T[], ArrayLike<R | Error>>): Lanes<T, R> {
  if (arguments.length > 3) refuseSurplus('createBatcher', arguments, 3);
  const example = 'createBatcher(device, { maxItems: 64, maxWaitMs: 2, maxQueue: 1000 }, stage)';
  checkOptionsGiven(opts, 'createBatcher', example);
  checkStage(stage);
  checkOptionNames(opts, [...SERVICE_OPTIONS, 'maxItems', 'maxWaitMs', 'targetLatencyMs']);
  const layout = checkLayout(device, opts.depth, opts.streams);
  const { targetLatencyMs } = opts;
  if (targetLatencyMs !== undefined) checkTarget(targetLatencyMs);
  else {
    checkGiven(
      'maxItems',
      opts.maxItems,
      'the largest number of requests in a batch, a whole number of at least 1; or pass targetLatencyMs instead',
      example,
    );
    const waits =
      'how many milliseconds the first request of a batch waits for further requests, at least 0; or pass targetLatencyMs instead';
    checkGiven('maxWaitMs', opts.maxWaitMs, waits, example);
  }
  checkGiven('maxQueue', opts.maxQueue, 'the largest number of waiting requests, a whole number of at least maxItems', example);
  const maxItems = checkInteger('maxItems', opts.maxItems ?? (targetLatencyMs === undefined ? undefined : opts.maxQueue), 1);
  const maxQueue = checkInteger('maxQueue', opts.maxQueue, 1);
  if (maxQueue < maxItems) {
    const message = `The maxQueue (${maxQueue}) is below maxItems (${maxItems}): a batch would never be full.`;
    throw badArgument('maxQueue', maxQueue, message, maxItems);
  }
  const hasWait = targetLatencyMs === undefined || opts.maxWaitMs !== undefined;
  const maxWaitMs = hasWait ? checkMilliseconds('maxWaitMs', opts.maxWaitMs) : undefined;
  const checkResults = (items: readonly T[], results: ArrayLike<R | Error>): ArrayLike<R | Error> => {
    // The stage may return a typed array in place of an array.
    const isList = Array.isArray(results) || (ArrayBuffer.isView(results) && !(results instanceof DataView));
    if (isList && results.length === items.length) return results;
    const got = isList ? `${results.length} results` : show(results);
    const message = `The stage returned ${got} for a batch of ${items.length} requests: it must return an array with one result for each.`;
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: results, limit: items.length });
  };
  const checked: Stage<readonly T[], ArrayLike<R | Error>> = (items, lane) => {
    const staged = stage(items, lane);
    if (isObservable<ArrayLike<R | Error>>(staged)) {
      const { last, map } = rx();
      return staged.pipe(
        last(),
        map((results) => checkResults(items, results)),
      );
    }
    return isPromiseLike<ArrayLike<R | Error>>(staged) ? Promise.resolve(staged).then((results) => checkResults(items, results)) : staged;
  };
  const work = { mayReject: true, stage: checked, answersOf: (results: ArrayLike<R | Error> | undefined) => results ?? [] };
  return new LaneService<T, ArrayLike<R | Error>, R>('batcher', layout, checkServicePolicy(opts), work, {
    maxItems,
    maxWaitMs,
    targetLatencyMs,
    maxQueue,
    maxQueueMs: checkQueueMs(opts.maxQueueMs),
  });
}

function checkTarget(ms: number): void {
  if (checkMilliseconds('targetLatencyMs', ms) > 0) return;
  throw badArgument('targetLatencyMs', ms, `targetLatencyMs (${show(ms)}) is not above 0.`, 0);
}
