// `stream.fill`: fills an array or a view.
// Thread: owner.
import { badArgument, belongsTo, show } from '../base/arguments.js';
import { writeAxes } from '../copies/memory-region.js';
import type { StreamContext } from '../device/stream-context.js';
import { DTYPES } from '../elements/dtype.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { StridedArray } from './strided-array.js';

/** Submits the fill and returns its ticket. */
export function submitFill(site: StreamContext, dst: StridedArray, value: unknown): number {
  const { core, timeline } = site;
  if (!((dst as unknown) instanceof StridedArray))
    throw badArgument('dst', dst, `The dst of the fill (${show(dst)}) is not a device array.`);
  if (dst.isDisposed) throw dst.disposedError();
  if (dst.core !== core) {
    throw badArgument('dst', dst, `The dst of the fill ${belongsTo(dst.core.name, core.name)}.`);
  }
  const { low, high } = scalarBits(dst.dtype, value, 'value');
  const { storage, length, byteOffset } = dst;
  const [start, end] = dst.byteRange;
  const { encoder } = core;
  const { slot } = timeline;
  if (length === 0) return core.submit(timeline, encoder.nop(slot));
  const record = core.tracker.begin(site);
  record.add(storage, start, end, true);
  return record.submit('fill', undefined, () => {
    const { byteSize } = DTYPES[dst.dtype];
    const offset = storage.base + byteOffset;
    if (dst.isContiguous) return encoder.fill(slot, storage.handle, byteSize, offset, length, low, high);
    const axes = writeAxes(encoder, dst.elements, dst.region, undefined);
    return encoder.fillStrided(slot, storage.handle, byteSize, offset, axes, low, high);
  });
}
