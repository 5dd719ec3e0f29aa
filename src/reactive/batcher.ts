// `createBatcher`: requests of a service that one launch serves together.
// Thread: owner.
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import { ArgumentError } from '../core/base/errors.js';
import { checkMilliseconds } from './error-policy.js';
import { checkServicePolicy, type Lanes, LaneService, type LanesOptions } from './lanes.js';
import type { Lane } from './lane.js';
import { checkOptionNames, LANE_OPTIONS } from './option-names.js';
import { checkLayout, type Devices } from './slots.js';

/** Options of `createBatcher`. */
export interface BatcherOptions extends LanesOptions {
  /** The most requests in a batch, at least 1. */
  readonly maxItems: number;
  /** Milliseconds that the first request of a batch waits for more, at least 0. A full batch does not wait. */
  readonly maxWaitMs: number;
  /** How many requests wait at most, at least `maxItems`; one more is refused with a LimitError. */
  readonly maxQueue: number;
}

/**
 * Makes lanes that serve requests in batches: the stage gets up to `maxItems` of them and returns as many results, in their order. One
 * launch for many small items is what makes a GPU worth its latency. A batch whose stage fails, or returns another number of results
 * (ArgumentError), rejects all its requests. Throws as `createLanes` does.
 * @example const batcher = createBatcher(device, { maxItems: 64, maxWaitMs: 2, maxQueue: 1000 }, inferBatch);
 */
export function createBatcher<T, R>(
  device: Devices,
  opts: BatcherOptions,
  stage: (items: readonly T[], lane: Lane) => PromiseLike<readonly R[]>,
): Lanes<T, R> {
  if (typeof stage !== 'function') throw badArgument('stage', stage, `The stage (${show(stage)}) is not a function.`);
  checkOptionNames(opts, [...LANE_OPTIONS, 'maxItems', 'maxWaitMs']);
  const layout = checkLayout(device, opts.depth, opts.streams);
  const maxItems = checkInteger('maxItems', opts.maxItems, 1);
  const maxQueue = checkInteger('maxQueue', opts.maxQueue, maxItems);
  const maxWaitMs = checkMilliseconds('maxWaitMs', opts.maxWaitMs);
  const checked = async (items: readonly T[], lane: Lane): Promise<readonly R[]> => {
    const results = await stage(items, lane);
    if (Array.isArray(results) && results.length === items.length) return results;
    const got = Array.isArray(results) ? `${results.length} results` : show(results);
    const message = `The stage returned ${got} for a batch of ${items.length} requests: it must return an array with one result for each.`;
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: results, limit: items.length });
  };
  const work = { stage: checked, answersOf: (last: readonly R[] | undefined) => last ?? [] };
  return new LaneService<T, readonly R[], R>('batcher', layout, checkServicePolicy(opts), work, { maxItems, maxWaitMs, maxQueue });
}
