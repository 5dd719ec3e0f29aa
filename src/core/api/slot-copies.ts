// `copy` and `fill` of a capture with slots: the memory and the value are those that each launch of the graph gives.
//
// The number of bytes that a copy moves is fixed at the capture, by the other end or by `count`. A fill overwrites all of the array that a
// launch gives. Launches check the lengths of their arrays against what the capture says here (CaptureSession.needs).
// Thread: owner.
import { CopyFlag, MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, checkInteger, show, wrongDevice } from '../base/arguments.js';
import { badCopy } from '../copies/copy-plan.js';
import type { StreamContext } from '../device/stream-context.js';
import { DTYPES, dtypeOfHost } from '../elements/dtype.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { CaptureSession } from '../graphs/capture-session.js';
import { COPY_DST, COPY_SRC, FILL_COUNT, FILL_MEMORY, FILL_PATTERN } from '../graphs/slot-entries.js';
import { ArraySlot, ScalarSlot } from '../graphs/slots.js';
import { MAX_EXTENT } from '../kernels/launch-geometry.js';
import type { SlotUse } from '../timeline/timeline.js';
import type { CopyOptions } from './copy.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

/** A copy that was added to a capture. */
export interface SlotCopy {
  readonly ticket: number;
  readonly byteLength: number;
}

type Operand = ArraySlot | StridedArray | PinnedArray;

/** `stream.copy` with a slot at one end, or both. */
export function submitSlotCopy(site: StreamContext, dst: unknown, src: unknown, opts: CopyOptions = {}): SlotCopy {
  const { core, timeline } = site;
  const [to, from] = [checkEnd(site, 'dst', dst), checkEnd(site, 'src', src)];
  if (to.dtype !== from.dtype)
    throw badCopy('src', src, `The dst of the copy has dtype ${to.dtype}, src has ${from.dtype}: the element types differ.`, to.dtype);
  if (opts.transfer === true) throw badCopy('transfer', true, 'A copy from or to a slot has no option transfer: leave it out.');
  const dstOffset = checkOffset('dstOffset', opts.dstOffset, to);
  const srcOffset = checkOffset('srcOffset', opts.srcOffset, from);
  const count = countOf(to, from, dstOffset, srcOffset, opts.count);
  const { byteSize } = DTYPES[to.dtype];
  const byteLength = count * byteSize;
  if (count === 0) return { ticket: core.submit(timeline, core.encoder.nop(timeline.slot)), byteLength };
  const isExact = opts.count === undefined;
  const slots: SlotUse[] = [];
  const record = core.tracker.begin(site);
  try {
    const ends = [
      [to, COPY_DST, dstOffset],
      [from, COPY_SRC, srcOffset],
    ] as const;
    const [target, source] = ends.map(([operand, arg, offset]) => {
      const isWrite = arg === COPY_DST;
      if (operand instanceof ArraySlot) {
        const session = timeline.recording as CaptureSession;
        session.need(operand, offset + count, isExact && offset === 0);
        slots.push({ arg, entry: session.entryOf(operand) as number });
        record.add(operand.memory, 0, 1, isWrite);
        return { channel: core.channel.id, space: MemorySpace.DEVICE, handle: 0, offset: offset * byteSize };
      }
      const { storage } = operand;
      const start = operand.byteOffset + offset * byteSize;
      record.add(storage, start, start + byteLength, isWrite);
      return { channel: storage.core.channel.id, space: storage.space, handle: storage.handle, offset: storage.base + start };
    }) as [Placed, Placed];
    record.order('copy', opts.label);
    const bytes = core.encoder.copy(
      timeline.slot,
      target.channel,
      target.space,
      target.handle,
      target.offset,
      source.channel,
      source.space,
      source.handle,
      source.offset,
      byteLength,
      target.space === MemorySpace.HOST || source.space === MemorySpace.HOST ? CopyFlag.PINNED : 0,
    );
    const ticket = core.submit(timeline, bytes);
    record.commit(ticket);
    timeline.recording?.takeSlots(timeline, slots);
    return { ticket, byteLength };
  } catch (error) {
    record.abandon();
    throw error;
  }
}

/** An end in the record. */
interface Placed {
  readonly channel: number;
  readonly space: MemorySpace;
  readonly handle: number;
  readonly offset: number;
}

/** `stream.fill` with a slot as dst, as the value, or both. */
export function submitSlotFill(site: StreamContext, dst: unknown, value: unknown): number {
  const { core, timeline } = site;
  if (!(dst instanceof ArraySlot || dst instanceof StridedArray))
    throw badArgument('dst', dst, `The dst of the fill (${show(dst)}) is neither a device array nor a slot.`);
  const target = checkEnd(site, 'dst', dst, 'fill') as ArraySlot | StridedArray;
  const slots: SlotUse[] = [];
  let bits = { low: 0, high: 0 };
  if (value instanceof ScalarSlot) {
    const session = sessionOf(site, value, 'value', 'fill');
    if (value.dtype !== target.dtype) {
      const message = `The value of the fill is slot ${value.name} of dtype ${value.dtype}; the array has ${target.dtype}.`;
      throw badArgument('value', value, message, target.dtype);
    }
    slots.push({ arg: FILL_PATTERN, entry: session.entryOf(value) as number });
  } else {
    bits = scalarBits(target.dtype, value, 'value');
  }
  const { byteSize } = DTYPES[target.dtype];
  const { encoder } = core;
  if (target instanceof StridedArray && target.length === 0) return core.submit(timeline, encoder.nop(timeline.slot));
  const record = core.tracker.begin(site);
  let ticket: number;
  if (target instanceof ArraySlot) {
    const session = timeline.recording as CaptureSession;
    session.need(target, 1, false);
    slots.push({ arg: FILL_MEMORY, entry: session.entryOf(target) as number }, { arg: FILL_COUNT, entry: session.lengthEntryOf(target) });
    record.add(target.memory, 0, 1, true);
    ticket = record.submit('fill', undefined, () => encoder.fill(timeline.slot, 0, byteSize, 0, 0, bits.low, bits.high));
  } else {
    const { storage, byteOffset, byteLength, length } = target;
    record.add(storage, byteOffset, byteOffset + byteLength, true);
    const offset = storage.base + byteOffset;
    ticket = record.submit('fill', undefined, () =>
      encoder.fill(timeline.slot, storage.handle, byteSize, offset, length, bits.low, bits.high),
    );
  }
  timeline.recording?.takeSlots(timeline, slots);
  return ticket;
}

/** The capture that the slot belongs to. */
function sessionOf({ timeline }: StreamContext, slot: ArraySlot | ScalarSlot, name: string, call: string): CaptureSession {
  const { recording } = timeline;
  if (recording instanceof CaptureSession && recording.entryOf(slot) !== undefined) return recording;
  const where = recording === undefined ? 'outside of a capture' : 'of another capture';
  const message = `The ${name} of the ${call} is slot ${slot.name} ${where}: use a slot only in the capture that it belongs to.`;
  throw badArgument(name, slot, message);
}

function checkEnd(site: StreamContext, name: 'dst' | 'src', operand: unknown, call = 'copy'): Operand {
  const { core, timeline } = site;
  const what = `The ${name} of the ${call}`;
  if (operand instanceof ArraySlot) {
    sessionOf(site, operand, name, call);
    if (operand.memory.core !== core) {
      const message = `${what} is slot ${operand.name} for arrays of device ${operand.memory.core.name}, the stream belongs to ${core.name}.`;
      throw wrongDevice(name, operand, message);
    }
    if (operand.access === (name === 'dst' ? 'in' : 'out')) {
      const message = `${what} is slot ${operand.name}, declared by ${operand.access}put; the ${call} ${name === 'dst' ? 'writes' : 'reads'} it.`;
      throw badArgument(name, operand, message);
    }
    return operand;
  }
  if (operand instanceof StridedArray || operand instanceof PinnedArray) {
    if (operand.isDisposed) throw operand.disposedError();
    if (operand instanceof PinnedArray) return operand;
    if (operand.core !== core) {
      const message = `${what} ${belongsTo(operand.core.name, core.name)}: with a slot, a ${call} stays on one device.`;
      throw wrongDevice(name, operand, message);
    }
    if (!operand.isContiguous)
      throw badArgument(name, operand, `${what} (${operand.label}) is not contiguous: a ${call} with a slot needs contiguous arrays.`);
    return operand;
  }
  const { recording } = timeline;
  if (recording !== undefined && dtypeOfHost(operand) !== undefined) {
    const [end, reason] = name === 'src' ? (['from', 'unsupported-node'] as const) : (['to', 'readback'] as const);
    throw recording.refusal(timeline, reason, `a graph cannot copy ${end} an ordinary typed array; copy ${end} a pinned one`);
  }
  throw badCopy(name, operand, `${what} (${show(operand)}) is neither a device array, a pinned array nor a slot.`);
}

function checkOffset(name: string, value: number | undefined, operand: Operand): number {
  if (value === undefined) return 0;
  return checkInteger(name, value, 0, operand instanceof ArraySlot ? MAX_EXTENT : operand.length);
}

/** How many elements the copy moves. */
function countOf(to: Operand, from: Operand, dstOffset: number, srcOffset: number, count: number | undefined): number {
  const room = Math.min(
    to instanceof ArraySlot ? MAX_EXTENT : to.length - dstOffset,
    from instanceof ArraySlot ? MAX_EXTENT : from.length - srcOffset,
  );
  if (count !== undefined) return checkInteger('count', count, 0, room);
  if (!(to instanceof ArraySlot && from instanceof ArraySlot)) return room;
  const message = `Both ends of the copy are slots (${to.name} and ${from.name}), whose lengths only a launch gives: pass the option count.`;
  throw badCopy('count', count, message);
}
