// What collectives of all kinds return, and how they order streams.
// Thread: owner.
import type { DeviceArray } from '../core/api/array.js';
import type { Stream } from '../core/api/stream.js';
import type { DType } from '../core/elements/dtype.js';
import type { Operation } from '../core/operations/operation.js';
import { Later } from './group.js';
import type { Collective } from './types.js';

/** Work of each stream after it waits for what was submitted to all of them before. Returns the last operation of each. */
export function order(streams: readonly Stream[]): readonly Operation[] {
  const [first, ...others] = streams as [Stream, ...Stream[]];
  let last: Operation | undefined;
  for (const other of others) last = first.waitStream(other);
  return [last ?? first.waitStream(first), ...others.map((other) => other.waitStream(first))];
}

/** `operations`: those of each rank, which a group has later. A wait does not fail, so the others tell how the collective ended. */
export function collective<D extends DType>(
  arrays: readonly DeviceArray<D>[],
  operations: readonly (readonly Operation[])[] | Later<readonly (readonly Operation[])[]>,
): Collective<D> {
  const all = (): readonly (readonly Operation[])[] => (operations instanceof Later ? operations.value : operations);
  return {
    arrays,
    get operations() {
      return all().map((ofRank) => ofRank.at(-1)!);
    },
    get done() {
      return Promise.all(
        all()
          .flat()
          .map((operation) => operation.done),
      ).then(() => undefined);
    },
  };
}
