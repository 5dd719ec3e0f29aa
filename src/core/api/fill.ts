// `stream.fill`: fills an array or a view.
// Thread: owner.
import { badArgument, belongsTo, show } from '../base/arguments.js';
import { writeAxes } from '../copies/memory-region.js';
import { MultiStepCopy } from '../copies/multi-step-copy.js';
import type { Moved } from '../copies/transfer.js';
import type { StreamContext } from '../device/stream-context.js';
import { DTYPES } from '../elements/dtype.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { StridedArray } from './strided-array.js';

/** The most records of a fill on another device's stream, and on the given one: the fill and its waits. */
const STEP_RECORDS = 8;

/** Submits the fill. */
export function submitFill(site: StreamContext, dst: StridedArray, value: unknown): Moved {
  const { core, timeline } = site;
  if (!((dst as unknown) instanceof StridedArray))
    throw badArgument('dst', dst, `The dst of the fill (${show(dst)}) is not a device array.`);
  if (dst.isDisposed) throw dst.disposedError();
  const over = dst.core === core ? undefined : dst.core.refuseIfOver();
  if (over !== undefined) throw over;
  const { low, high } = scalarBits(dst.dtype, value, 'value');
  if (dst.length === 0) return { ticket: core.submit(timeline, core.encoder.nop(timeline.slot)), parts: undefined };
  return dst.core === core ? { ticket: fillOn(site, dst, low, high), parts: undefined } : fillElsewhere(site, dst, low, high);
}

/** A stream of the array's device fills it. The given stream waits for that, so that the fill behaves like one operation of it. */
function fillElsewhere(site: StreamContext, dst: StridedArray, low: number, high: number): Moved {
  const { core, timeline, ordering } = site;
  const { recording } = timeline;
  if (recording !== undefined && dst.core.channel.backend !== core.channel.backend) {
    throw recording.refusal(
      timeline,
      'unsupported-node',
      `a graph runs on devices of one backend, and the dst of the fill ${belongsTo(dst.core.name, core.name)}`,
    );
  }
  const steps = new MultiStepCopy(site, undefined);
  if (ordering === 'checked') {
    const record = core.tracker.begin(site);
    record.add(dst.storage, ...dst.byteRange, true);
    steps.checkRecord(record, 'fill');
  }
  const filling = steps.on(dst.core);
  steps.reserve(STEP_RECORDS);
  steps.step(filling, () => fillOn(filling, dst, low, high));
  return { ticket: steps.end(), parts: steps.parts };
}

/** Fills an array of the stream's device that has elements. Returns the ticket. */
function fillOn(site: StreamContext, dst: StridedArray, low: number, high: number): number {
  const { core, timeline } = site;
  const { storage, length, byteOffset } = dst;
  const [start, end] = dst.byteRange;
  const { encoder } = core;
  const { slot } = timeline;
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
