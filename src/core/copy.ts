// The two ends of a copy: what they are, whether they fit together, and which bytes move.
import { badArgument, checkInteger, show } from './arguments.js';
import { DeviceArray } from './array.js';
import type { DeviceCore } from './device-core.js';
import { DTYPES, type DType, dtypeOfHost, type HostArray } from './dtype.js';
import { PinnedArray } from './pinned.js';
import type { Storage } from './storage.js';

export interface CopyOptions {
  /** In elements. */
  readonly dstOffset?: number;
  readonly srcOffset?: number;
  /** Default: all of src after srcOffset. 0 copies nothing. */
  readonly count?: number;
  readonly label?: string;
}

/** Memory that the device reaches. */
export interface Place {
  readonly storage: Storage;
  /** In the storage. */
  readonly offset: number;
}

/** An end of a copy: a place, or the bytes of an ordinary array. */
export type End = { readonly place: Place; readonly bytes?: undefined } | { readonly place?: undefined; readonly bytes: Uint8Array };

export interface CopyPlan {
  readonly dst: End;
  readonly src: End;
  readonly byteLength: number;
}

export function planCopy(core: DeviceCore, dst: unknown, src: unknown, opts: CopyOptions = {}): CopyPlan {
  const to = checkEnd(core, 'dst', dst);
  const from = checkEnd(core, 'src', src);
  if (!isReachable(to) && !isReachable(from)) {
    throw badArgument('dst', dst, `Neither dst (${show(dst)}) nor src (${show(src)}) is an array of device ${core.name}.`);
  }
  const dtype = checkSameDType(to, from);
  const srcOffset = opts.srcOffset === undefined ? 0 : checkInteger('srcOffset', opts.srcOffset, 0, from.length);
  const dstOffset = opts.dstOffset === undefined ? 0 : checkInteger('dstOffset', opts.dstOffset, 0, to.length);
  const count = opts.count === undefined ? from.length - srcOffset : checkInteger('count', opts.count, 0, from.length - srcOffset);
  if (dstOffset + count > to.length) {
    const message = `The elements to copy (${count} from dstOffset ${dstOffset}) exceed the length of dst (${to.length}).`;
    throw badArgument('count', count, message, to.length - dstOffset);
  }
  const { byteSize } = DTYPES[dtype];
  const plan = { dst: endOf(to, dstOffset, count, byteSize), src: endOf(from, srcOffset, count, byteSize), byteLength: count * byteSize };
  checkApart(plan, src);
  return plan;
}

/** The dtype that two ends have in common; ordinary arrays stand for every dtype of their class. */
function checkSameDType(to: Operand, from: Operand): DType {
  const dtype = isReachable(to) ? to.dtype : (from as DeviceArray | PinnedArray).dtype;
  for (const [name, operand] of [
    ['dst', to],
    ['src', from],
  ] as const) {
    const fits = isReachable(operand) ? operand.dtype === dtype : isHostOf(operand, dtype);
    if (fits) continue;
    const has = isReachable(operand) ? operand.dtype : show(operand);
    throw badArgument(name, operand, `The ${name} of the copy is ${has}; the other end is ${dtype}.`, dtype);
  }
  return dtype;
}

type Operand = DeviceArray | PinnedArray | HostArray | Uint8ClampedArray;

function isReachable(operand: Operand): operand is DeviceArray | PinnedArray {
  return operand instanceof DeviceArray || operand instanceof PinnedArray;
}

/** Can this ordinary array hold elements of the dtype? */
export function isHostOf(data: unknown, dtype: DType): data is HostArray {
  return data instanceof DTYPES[dtype].make || (dtype === 'u8' && data instanceof Uint8ClampedArray);
}

function checkEnd(core: DeviceCore, name: string, operand: unknown): Operand {
  if (operand instanceof DeviceArray || operand instanceof PinnedArray) {
    if (operand.isDisposed) throw operand.disposedError();
    const owner = operand instanceof DeviceArray ? operand.device.core : operand.core;
    if (owner !== core)
      throw badArgument(
        name,
        operand,
        `The ${name} of the copy is an array of device ${owner.name}; the stream is one of ${core.name}.`,
        core.name,
      );
    return operand;
  }
  if (dtypeOfHost(operand) === undefined)
    throw badArgument(name, operand, `The ${name} of the copy (${show(operand)}) is neither an array of the device nor a typed array.`);
  return operand as HostArray;
}

function endOf(operand: Operand, offset: number, count: number, byteSize: number): End {
  if (isReachable(operand)) {
    const { storage } = operand;
    return { place: { storage, offset: operand.byteOffset + offset * byteSize } };
  }
  return { bytes: new Uint8Array(operand.buffer, operand.byteOffset + offset * byteSize, count * byteSize) };
}

/** Devices copy in no order: where the ends overlap the result would be anything. */
function checkApart({ dst, src, byteLength }: CopyPlan, value: unknown): void {
  if (dst.place === undefined || src.place === undefined || dst.place.storage !== src.place.storage || byteLength === 0) return;
  const distance = Math.abs(dst.place.offset - src.place.offset);
  if (distance >= byteLength) return;
  throw badArgument('src', value, `The ends of the copy overlap (${byteLength - distance} of ${byteLength} bytes).`);
}
