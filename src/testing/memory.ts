// The memory of a test device: bytes by handle, and the effects of copies and fills on them.
import {
  Access,
  BatchedCopy,
  CopyBatchRecord,
  CopyRecord,
  CopyStridedRecord,
  ExternalRecord,
  FillRecord,
  FillStridedRecord,
  LaunchArg,
  Opcode,
  RecordHeader,
  StridedAxis,
  type MemorySpace,
} from '../protocol/protocol.gen.js';

export interface Block {
  readonly bytes: Uint8Array;
  /** The failure that poisoned it; 0 if it is not poisoned. */
  poison: number;
  /** Its allocation failed: operations that write it fail too. */
  readonly isAbsent?: boolean;
}

/** The memory that a record names, on the device that it names. */
export type FindBlock = (device: number, space: MemorySpace, handle: number) => Block | undefined;

/** What an operation reads and writes, and how it is carried out. */
export interface Effect {
  readonly reads: readonly Block[];
  readonly writes: readonly Block[];
  /** Whether it overwrites every byte of `writes`, which clears their poison. */
  readonly isWhole: boolean;
  readonly run: () => void;
}

export const NO_EFFECT: Effect = { reads: [], writes: [], isWhole: false, run: () => undefined };

type Axis = readonly [extent: number, stride: number];

export const long = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));

/** Of a copy or a batch. Undefined while memory that the record names is not allocated. */
export function copyEffect(view: DataView, find: FindBlock): Effect | undefined {
  const effects = copiesOf(view).map((copy) => effectOf(copy, find));
  if (!effects.every((effect) => effect !== undefined)) return undefined;
  return {
    reads: effects.flatMap(({ reads }) => reads),
    writes: effects.flatMap(({ writes }) => writes),
    isWhole: effects.every(({ isWhole }) => isWhole),
    run: () => effects.forEach(({ run }) => run()),
  };
}

function effectOf(view: DataView, find: FindBlock): Effect | undefined {
  const dst = copyEnd(view, 'DST', find);
  const src = copyEnd(view, 'SRC', find);
  if (dst === undefined || src === undefined) return undefined;
  const byteLength = long(view, CopyRecord.BYTES);
  const from = long(view, CopyRecord.SRC_OFFSET);
  return {
    reads: [src],
    writes: [dst],
    isWhole: byteLength === dst.bytes.length,
    run: () => dst.bytes.set(src.bytes.subarray(from, from + byteLength), long(view, CopyRecord.DST_OFFSET)),
  };
}

/** Of a function of `external`, which changes no bytes. Undefined while memory that the record names is not allocated. */
export function externalEffect(view: DataView, find: (handle: number) => Block | undefined): Effect | undefined {
  const [reads, writes]: [Block[], Block[]] = [[], []];
  let isWhole = true;
  for (let n = 0; n < view.getUint32(ExternalRecord.ARG_COUNT, true); n++) {
    const at = ExternalRecord.BYTE_SIZE + n * LaunchArg.BYTE_SIZE;
    const block = find(view.getUint32(at + LaunchArg.HANDLE, true));
    if (block === undefined) return undefined;
    const access = view.getUint8(at + LaunchArg.ACCESS);
    if ((access & Access.READ) !== 0) reads.push(block);
    if ((access & Access.WRITE) !== 0) writes.push(block);
    if ((access & Access.PART) !== 0) isWhole = false;
  }
  return { reads, writes, isWhole, run: () => undefined };
}

/** The sum over the copies of a record. */
export function ofCopies(view: DataView, msOf: (copy: DataView) => number): number {
  return copiesOf(view).reduce((sum, copy) => sum + msOf(copy), 0);
}

/** The copies of a batch, each as a view of a COPY record, or a COPY record itself. */
function copiesOf(view: DataView): DataView[] {
  if (view.getUint16(RecordHeader.OPCODE, true) !== Opcode.COPY_BATCH) return [view];
  const first = CopyBatchRecord.BYTE_SIZE - RecordHeader.BYTE_SIZE;
  return Array.from({ length: view.getUint32(CopyBatchRecord.COUNT, true) }, (_, n) => {
    return new DataView(view.buffer, view.byteOffset + first + n * BatchedCopy.BYTE_SIZE, CopyRecord.BYTE_SIZE);
  });
}

function copyEnd(view: DataView, end: 'DST' | 'SRC', find: FindBlock): Block | undefined {
  const space = view.getUint16(CopyRecord[`${end}_SPACE`], true) as MemorySpace;
  return find(view.getUint32(CopyRecord[`${end}_DEVICE`], true), space, view.getUint32(CopyRecord[`${end}_HANDLE`], true));
}

/** Between arrays of one device. */
export function stridedCopyEffect(view: DataView, find: (handle: number) => Block | undefined): Effect | undefined {
  const dst = find(view.getUint32(CopyStridedRecord.DST_HANDLE, true));
  const src = find(view.getUint32(CopyStridedRecord.SRC_HANDLE, true));
  if (dst === undefined || src === undefined) return undefined;
  const size = view.getUint32(CopyStridedRecord.ELEMENT_BYTES, true);
  const to = long(view, CopyStridedRecord.DST_OFFSET);
  const from = long(view, CopyStridedRecord.SRC_OFFSET);
  const run = (): void => {
    const sources = offsetsOf(axesOf(view, StridedAxis.SRC_STRIDE));
    for (const [n, at] of offsetsOf(axesOf(view, StridedAxis.DST_STRIDE)).entries()) {
      const start = from + (sources[n] as number);
      dst.bytes.set(src.bytes.subarray(start, start + size), to + at);
    }
  };
  return { reads: [src], writes: [dst], isWhole: false, run };
}

export function fillEffect(view: DataView, find: (handle: number) => Block | undefined): Effect | undefined {
  // Both records have the handle, the element's size and the offset at the same places.
  const block = find(view.getUint32(FillRecord.HANDLE, true));
  if (block === undefined) return undefined;
  const size = view.getUint32(FillRecord.ELEMENT_BYTES, true);
  const isStrided = view.getUint16(RecordHeader.OPCODE, true) === Opcode.FILL_STRIDED;
  const start = long(view, isStrided ? FillStridedRecord.OFFSET : FillRecord.OFFSET);
  const pattern = new Uint8Array(view.buffer, isStrided ? FillStridedRecord.PATTERN : FillRecord.PATTERN, size);
  const count = isStrided ? 0 : long(view, FillRecord.COUNT);
  const run = (): void => {
    if (isStrided) {
      for (const at of offsetsOf(axesOf(view, StridedAxis.DST_STRIDE))) block.bytes.set(pattern, start + at);
    } else if (count > 0) {
      const all = block.bytes.subarray(start, start + count * size);
      all.set(pattern);
      for (let done = size; done < all.length; done *= 2) all.copyWithin(done, 0, done);
    }
  };
  return { reads: [], writes: [block], isWhole: count * size === block.bytes.length, run };
}

function axesOf(view: DataView, stride: number): Axis[] {
  const isCopy = view.getUint16(RecordHeader.OPCODE, true) === Opcode.COPY_STRIDED;
  const rank = view.getUint32(isCopy ? CopyStridedRecord.RANK : FillStridedRecord.RANK, true);
  return Array.from({ length: rank }, (_, axis) => {
    const at = CopyStridedRecord.BYTE_SIZE + axis * StridedAxis.BYTE_SIZE;
    return [long(view, at + StridedAxis.EXTENT), Number(view.getBigInt64(at + stride, true))] as const;
  });
}

/** The byte offsets of all elements, the fastest axis last. */
function offsetsOf(axes: readonly Axis[]): number[] {
  let offsets = [0];
  for (const [extent, stride] of axes) offsets = offsets.flatMap((offset) => Array.from({ length: extent }, (_, n) => offset + n * stride));
  return offsets;
}
