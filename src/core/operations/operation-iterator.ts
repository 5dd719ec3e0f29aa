// Finished operations as async iterables, by what a slow reader loses.
// Thread: owner.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { BatchIterator, HubIterator, type Limits, type ObservedIterator } from '../base/hub-iterator.js';
import type { ObservableOf, Observed } from '../base/observable.js';
import type { Operation } from './operation.js';

/** What `for await (const operation of stream)` buffers. */
const BUFFERED = 1024;

/**
 * What a slow reader loses. `every`: nothing while at most so many operations wait unread; beyond that `overflow` decides, as in
 * `BatchPolicy`. 'latest': everything but the newest.
 */
export type LossPolicy = { readonly every: number; readonly overflow?: 'error' | 'drop-oldest' } | 'latest';

/**
 * Loses the iteration itself, or the oldest operations, when more than `batches` wait unread. Operations in arrays: one `await` takes all that
 * have finished since the last read, up to `batches`.
 */
export interface BatchPolicy {
  /** The most operations in one array, and the most that wait unread: a whole number of at least 1. */
  readonly batches: number;
  /** When more wait than that: 'error' (default) ends the iteration with `ERR_MILLRACE_OVERFLOW`, 'drop-oldest' loses the oldest. */
  readonly overflow?: 'error' | 'drop-oldest';
}

/** `stream[Symbol.asyncIterator]`. */
export function iterate<T>(
  source: Observed<T>,
  name: string,
  limits: Limits = { buffered: BUFFERED, overflow: 'drop-oldest' },
): ObservedIterator<T> {
  return new HubIterator(source, name, limits);
}

/** What finished operations can be read from: a stream, or a device for all its streams. */
export interface OperationSource {
  readonly operations$: ObservableOf<Operation>;
  /** @internal */
  readonly hub: Observed<Operation>;
  /** @internal */
  readonly hubName: string;
}

/**
 * What `operations$` of a stream or device emits, as an iterable that loses for a slow reader what the policy says: with `every` and
 * `batches` nothing while at most so many operations wait unread, with 'latest' everything but the newest. Begins when iteration starts,
 * with the operations that are pending then. Throws ArgumentError for a bad policy.
 * @example for await (const operation of operationsOf(stream, 'latest')) console.log(operation.id);
 */
export function operationsOf(of: OperationSource, policy: LossPolicy): AsyncIterable<Operation>;
export function operationsOf(of: OperationSource, policy: BatchPolicy): AsyncIterable<readonly Operation[]>;
export function operationsOf(
  of: OperationSource,
  policy: LossPolicy | BatchPolicy,
): AsyncIterable<Operation> | AsyncIterable<readonly Operation[]> {
  const limits = checkPolicy(policy);
  const entries = (): HubIterator<Operation> => new HubIterator(of.hub, of.hubName, limits);
  if (typeof policy === 'object' && 'batches' in policy)
    return { [Symbol.asyncIterator]: () => new BatchIterator(entries(), limits.buffered) };
  return { [Symbol.asyncIterator]: entries };
}

function checkPolicy(policy: LossPolicy | BatchPolicy): Limits {
  if (policy === 'latest') return { buffered: 1, overflow: 'drop-silently' };
  if (typeof policy !== 'object' || policy === null) {
    throw badArgument('policy', policy, `The policy (${show(policy)}) is none of 'latest', { every }, { batches }.`);
  }
  const { overflow = 'error' } = policy;
  if (overflow !== 'error' && overflow !== 'drop-oldest') {
    throw badArgument('overflow', overflow, `The overflow (${show(overflow)}) is none of 'error', 'drop-oldest'.`);
  }
  const buffered = 'batches' in policy ? checkInteger('batches', policy.batches, 1) : checkInteger('every', policy.every, 1);
  return { buffered, overflow };
}
