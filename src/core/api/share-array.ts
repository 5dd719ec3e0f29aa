// Arrays on their way from one thread to another that has the same device open: `array.share()`; memory/adoption.ts is the other end.
//
// A token names the memory and the last record of each stream that the sharing thread used it in.
// Thread: owner.
import type { DType } from '../elements/dtype.js';
import { refuseApart } from '../base/apart.js';
import { type ArrayToken, arrayToken } from '../memory/array-token.js';
import type { StridedArray } from './strided-array.js';

/** `array.share`. */
export function shareArray<D extends DType>(array: StridedArray<D>): ArrayToken<D> {
  const { core, dtype, shape, storage, byteOffset, isContiguous } = array;
  refuseApart(core, 'Use by other threads');
  storage.whenUsed?.();
  storage.isExposed = true;
  const uses = [];
  for (const { timeline, ticket } of storage.uses()) {
    // A stream that is closed has finished.
    if (!timeline.isRetired) uses.push({ channel: timeline.channel.id, stream: timeline.slot, ticket });
  }
  return arrayToken({
    dtype,
    shape: [...shape],
    device: core.name,
    key: core.channel.address.key,
    strides: isContiguous ? undefined : [...array.strides],
    handle: storage.handle,
    byteOffset,
    storageBytes: storage.byteLength,
    uses,
  });
}
