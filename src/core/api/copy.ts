// The arguments of `stream.copy`: checks the two ends of a copy, and finds which elements move. Nothing is submitted here.
//
// Two contiguous ends are flat sequences of elements. If one end is not contiguous, both must have the same shape or one dimension each. An
// ordinary typed array has no shape and takes the shape of the other end.
// Thread: owner.
import { checkInteger, show } from '../base/arguments.js';
import { isDetached, plainView } from '../base/buffers.js';
import { MAX_HOST_BYTES, tooManyBytes } from '../base/host-bytes.js';
import { checkOptionNames } from '../base/option-names.js';
import type { ArgumentError } from '../base/errors.js';
import { badCopy, type CopyPlan, type End } from '../copies/copy-plan.js';
import { type Elements, flatRegion, type Region } from '../copies/memory-region.js';
import { checkTransfer } from '../copies/upload.js';
import { DTYPES, type DType, dtypeOfHost, isHostOf, type HostArray } from '../elements/dtype.js';
import { areApart } from '../elements/view-overlap.js';
import { contiguousStrides, isContiguous, reachOf } from '../elements/strides.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

/** The range of elements that `stream.copy` copies. Bad values are an ArgumentError of the call. */
export interface CopyOptions {
  /** The first element of dst to overwrite; default 0. Needs two contiguous ends, or two of one dimension. */
  readonly dstOffset?: number;
  /** The first element of src to copy; default 0. Needs two contiguous ends, or two of one dimension. */
  readonly srcOffset?: number;
  /** How many elements to copy; default all of src from `srcOffset` on. 0 copies nothing. */
  readonly count?: number;
  /** The name of the copy in messages and in `device.inspect()`. */
  readonly label?: string;
  /**
   * If src is a plain typed array: its whole ArrayBuffer is detached and handed to the device instead of copied, which takes no time at
   * any size. Throws ArgumentError for a buffer that cannot be detached. Default false.
   */
  readonly transfer?: boolean;
}

type Reachable = StridedArray | PinnedArray;
type Operand = Reachable | HostArray | Uint8ClampedArray;

const NO_OPTIONS: CopyOptions = {};
const OPTIONS: readonly string[] = ['dstOffset', 'srcOffset', 'count', 'label', 'transfer'];

/** The options of a copy, each read once, so that no getter among them runs after the arrays were checked. Throws ArgumentError. */
export function readCopyOptions(opts: CopyOptions | undefined, known: readonly string[] = OPTIONS): CopyOptions {
  if (opts === undefined) return NO_OPTIONS;
  checkOptionNames(opts, known);
  const { dstOffset, srcOffset, count, label, transfer } = opts;
  return { dstOffset, srcOffset, count, label, transfer } as CopyOptions;
}

/** The arguments of `stream.copy`. */
export function planCopy(dst: unknown, src: unknown, opts: CopyOptions): CopyPlan {
  const to = checkEnd('dst', dst);
  const from = checkEnd('src', src);
  if (!isReachable(to) && !isReachable(from)) {
    throw badCopy('dst', dst, `Neither dst (${show(dst)}) nor src (${show(src)}) is a device array or a pinned array.`);
  }
  const { byteSize } = DTYPES[checkSameDType(to, from)];
  const planOf = isFlat(to) && isFlat(from) ? flatPlan : stridedPlan;
  const plan = planOf(isReachable(to) ? to : plainView(to), isReachable(from) ? from : plainView(from), opts, byteSize);
  checkApart(plan, src);
  if (plan.isTransfer) checkTransfer(src, plan.src.bytes !== undefined && plan.dst.bytes === undefined);
  return plan;
}

/** Written out, because a spread of an object takes longer than the rest of the plan. */
function makePlan({ shape, byteSize, byteLength }: Elements, dst: End, src: End, opts: CopyOptions): CopyPlan {
  return { shape, byteSize, byteLength, dst, src, label: opts.label, isTransfer: opts.transfer === true };
}

function flatPlan(to: Operand, from: Operand, opts: CopyOptions, byteSize: number): CopyPlan {
  const { dstOffset, srcOffset, count } = checkRange(to, from, opts);
  const byteLength = count * byteSize;
  const [dst, src] = [flatEnd(to, dstOffset * byteSize, byteLength), flatEnd(from, srcOffset * byteSize, byteLength)];
  return makePlan({ shape: [count], byteSize, byteLength }, dst, src, opts);
}

function stridedPlan(to: Operand, from: Operand, opts: CopyOptions, byteSize: number): CopyPlan {
  if (rankOf(to) === 1 && rankOf(from) === 1) {
    const { dstOffset, srcOffset, count } = checkRange(to, from, opts);
    const elements = { shape: [count], byteSize, byteLength: count * byteSize };
    return makePlan(elements, endOf(to, dstOffset, elements), endOf(from, srcOffset, elements), opts);
  }
  for (const name of ['dstOffset', 'srcOffset', 'count'] as const) {
    if (opts[name] === undefined || (name !== 'count' && opts[name] === 0)) continue;
    const ends = `dst is ${describe(to)}, src is ${describe(from)}`;
    throw badCopy(
      name,
      opts[name],
      `The ${name} (${show(opts[name])}) requires two contiguous arrays or two arrays of one dimension: ${ends}.`,
    );
  }
  const shape = isReachable(to) ? to.shape : (from as Reachable).shape;
  const fits = (operand: Operand): boolean =>
    isReachable(operand)
      ? operand.shape.length === shape.length && operand.shape.every((extent, axis) => extent === shape[axis])
      : operand.length === (isReachable(to) ? to : from).length;
  if (!fits(to) || !fits(from)) {
    throw badCopy(
      'src',
      from,
      `The shapes of the copy differ, and one array is not contiguous: dst is ${describe(to)}, src is ${describe(from)}.`,
      shape,
    );
  }
  const elements = { shape, byteSize, byteLength: (isReachable(to) ? to : from).length * byteSize };
  return makePlan(elements, endOf(to, 0, elements), endOf(from, 0, elements), opts);
}

/** The first elements and the number of elements to copy. */
function checkRange(to: Operand, from: Operand, opts: CopyOptions): { dstOffset: number; srcOffset: number; count: number } {
  const srcOffset = checkCount('srcOffset', opts.srcOffset, from.length, to, from) ?? 0;
  const dstOffset = checkCount('dstOffset', opts.dstOffset, to.length, to, from) ?? 0;
  const count = checkCount('count', opts.count, from.length - srcOffset, to, from) ?? from.length - srcOffset;
  if (dstOffset + count > to.length) {
    const ends = `dst is ${describe(to)}, src is ${describe(from)}`;
    const message = `The elements to copy (${count} from dstOffset ${dstOffset}) exceed the length of dst (${to.length}): ${ends}.`;
    throw badCopy('count', count, message, to.length - dstOffset);
  }
  return { dstOffset, srcOffset, count };
}

function checkCount(name: string, value: number | undefined, limit: number, to: Operand, from: Operand): number | undefined {
  if (value === undefined) return undefined;
  try {
    return checkInteger(name, value, 0, limit);
  } catch (error) {
    const { message, limit: broken } = error as ArgumentError;
    throw badCopy(name, value, `${message.slice(0, -1)}: dst is ${describe(to)}, src is ${describe(from)}.`, broken);
  }
}

/** The dtype of both ends. An ordinary typed array fits every dtype of its class. */
function checkSameDType(to: Operand, from: Operand): DType {
  const dtype = isReachable(to) ? to.dtype : (from as Reachable).dtype;
  for (const [name, operand] of [
    ['dst', to],
    ['src', from],
  ] as const) {
    const fits = isReachable(operand) ? operand.dtype === dtype : isHostOf(operand, dtype);
    if (fits) continue;
    throw badCopy(
      name,
      operand,
      `The element types of the copy differ: ${name} is ${describe(operand)}, ${name === 'dst' ? 'src' : 'dst'} is ${describe(name === 'dst' ? from : to)}.`,
      dtype,
    );
  }
  return dtype;
}

function isReachable(operand: Operand): operand is Reachable {
  return operand instanceof StridedArray || operand instanceof PinnedArray;
}

function isFlat(operand: Operand): boolean {
  return !(operand instanceof StridedArray) || operand.isContiguous;
}

function rankOf(operand: Operand): number {
  return isReachable(operand) ? operand.shape.length : 1;
}

function describe(operand: Operand): string {
  return isReachable(operand) ? `${operand.dtype}[${operand.shape.join(', ')}]` : `${show(operand)}[${plainView(operand).length}]`;
}

function checkEnd(name: string, operand: unknown): Operand {
  if (operand instanceof StridedArray || operand instanceof PinnedArray) {
    if (operand.isDisposed) throw operand.disposedError();
    const over = operand.storage.core.refuseIfOver();
    if (over !== undefined) throw over;
    return operand;
  }
  if (dtypeOfHost(operand) === undefined)
    throw badCopy(name, operand, `The ${name} of the copy (${show(operand)}) is neither a device array, a pinned array nor a typed array.`);
  if (isDetached(operand as HostArray))
    throw badCopy(
      name,
      operand,
      `The ${name} of the copy (${show(operand)}) is detached: its memory was transferred to another ArrayBuffer.`,
    );
  return operand as HostArray;
}

function flatEnd(operand: Operand, byteOffset: number, byteLength: number): End {
  if (isReachable(operand)) return { region: flatRegion(operand.storage, operand.byteOffset + byteOffset, byteLength) };
  if (byteLength > MAX_HOST_BYTES) throw badCopy('count', byteLength, tooManyBytes('bytes to copy', byteLength), MAX_HOST_BYTES);
  return { bytes: new Uint8Array(operand.buffer, operand.byteOffset + byteOffset, byteLength) };
}

/** One end of a copy of these elements: the array from element `first` on if it has one dimension, else the whole array. */
function endOf(operand: Operand, first: number, { shape, byteSize, byteLength }: Elements): End {
  if (!(operand instanceof StridedArray)) return flatEnd(operand, first * byteSize, byteLength);
  const { strides, storage } = operand;
  const offset = operand.byteOffset + (first === 0 ? 0 : first * (strides[0] as number) * byteSize);
  if (isContiguous({ shape, strides })) return { region: flatRegion(storage, offset, byteLength) };
  const [low, high] = reachOf({ shape, strides });
  return { region: { storage, offset, start: offset + low * byteSize, end: offset + high * byteSize, strides } };
}

/** Throws if the ends overlap: devices copy elements in any order, so the result would be undefined. */
function checkApart({ dst, src, shape, byteSize }: CopyPlan, value: unknown): void {
  const [to, from] = [dst.region, src.region];
  if (to === undefined || from === undefined || to.storage !== from.storage || to.start >= from.end || from.start >= to.end) return;
  const placed = (region: Region): Parameters<typeof areApart>[0] => ({
    offset: region.offset / byteSize,
    shape,
    strides: region.strides ?? contiguousStrides(shape),
  });
  if (areApart(placed(to), placed(from))) return;
  const shared = Math.min(to.end, from.end) - Math.max(to.start, from.start);
  throw badCopy(
    'src',
    value,
    `The dst and src of the copy overlap (${shared} bytes, each with shape [${shape.join(', ')}]): copy through another array.`,
  );
}
