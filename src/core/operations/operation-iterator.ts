// Finished operations as async iterables, with a policy for slow readers.
// Thread: owner.
import { badArgument, checkInteger, refuseSurplus, show } from '../base/arguments.js';
import { BatchIterator, HubIterator, type Limits, type ObservedIterator } from '../base/observed-iterator.js';
import type { ObservableOf, Observed } from '../base/observable.js';
import type { Operation } from './operation.js';

/** The buffer of `for await (const operation of stream)`, in operations. */
const BUFFERED = 1024;

/**
 * Which operations a slow reader loses. `every`: none while at most this many operations are unread; when there are more, `overflow`
 * decides, as in `BatchPolicy`. 'latest': all except the newest.
 */
export type LossPolicy = { readonly every: number; readonly overflow?: 'error' | 'drop-oldest' } | 'latest';

/**
 * Delivers operations in arrays: one `await` takes the operations that have finished since the last read, at most `batches`. When more than
 * `batches` are unread, `overflow` decides.
 */
export interface BatchPolicy {
  /** The most operations in one array, and the most that wait unread: a whole number of at least 1. */
  readonly batches: number;
  /** When more operations wait: 'error' (default) ends the iteration with `ERR_MILLRACE_OVERFLOW`, 'drop-oldest' drops the oldest. */
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

/** A source of finished operations: a stream, or a device for all its streams. */
export interface OperationSource {
  readonly operations$: ObservableOf<Operation>;
  /** @internal */
  readonly hub: Observed<Operation>;
  /** @internal */
  readonly hubName: string;
}

/**
 * The operations that `operations$` of a stream or device emits, as an iterable. The policy says which of them a slow reader loses: see
 * `LossPolicy` and `BatchPolicy`. Begins when iteration starts, with the operations that are pending then. Throws ArgumentError for a bad
 * policy.
 * @example for await (const operation of operationsOf(stream, 'latest')) console.log(operation.id);
 */
export function operationsOf(of: OperationSource, policy: LossPolicy): AsyncIterable<Operation>;
export function operationsOf(of: OperationSource, policy: BatchPolicy): AsyncIterable<readonly Operation[]>;
export function operationsOf(
  of: OperationSource,
  policy: LossPolicy | BatchPolicy,
): AsyncIterable<Operation> | AsyncIterable<readonly Operation[]> {
  if (arguments.length > 2) refuseSurplus('operationsOf', arguments, 2);
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
