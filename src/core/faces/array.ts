// An array in device memory: a handle, a shape, and no bytes in JavaScript. Made, filled and freed in stream order, so
// none of it waits.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import { type ArgumentError, StateError } from '../base/errors.js';
import { type Elements, flatRegion, type Region } from '../copies/region.js';
import { DTYPES, type DType, type HostOf, type HostValue } from '../elements/dtype.js';
import { elementValue } from '../elements/scalar-bits.js';
import { clampRange, checkReshape, lengthOf, type Shape } from '../elements/shape.js';
import {
  type AxisIndex,
  contiguousStrides,
  indexed,
  isContiguous,
  type Layout,
  reachOf,
  reshapedStrides,
  transposed,
} from '../elements/strides.js';
import { exportMemory } from '../memory/interprocess-memory.js';
import { disposedError, Lease } from '../memory/lease.js';
import type { Storage } from '../memory/storage.js';
import type { WaitOptions } from '../waits/wait.js';
import type { Device } from './device.js';
import { readArray } from './readback.js';
import type { Stream } from './stream.js';

/**
 * Device memory with a dtype, a shape and strides: `cupy.ndarray`, `wp.array`. Declare it with `using`. Once it is disposed, its
 * methods and every call that is given it throw (or, async, reject with) a StateError. Views share its memory and copy nothing.
 */
export class DeviceArray<D extends DType = DType> implements Disposable {
  /** The element type: `ndarray.dtype`, `wp.array.dtype`. */
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. At most 8 dimensions; [] is one element. */
  readonly shape: readonly number[];
  /** Elements: the product of `shape`. */
  readonly length: number;
  /** Do the elements follow each other in memory, in their order? Kernels take such arrays. */
  readonly isContiguous: boolean;
  /** The device that the memory belongs to. */
  readonly device: Device;
  /** @internal */
  readonly storage: Storage;
  /** @internal Where its first element is in its storage. */
  readonly byteOffset: number;
  #strides: readonly number[] | undefined;
  readonly #lease: Lease;
  readonly #isView: boolean;
  #isDisposed = false;

  /** @internal Made by the factories of devices and streams. */
  constructor(
    device: Device,
    dtype: D,
    shape: readonly number[],
    storage: Storage,
    byteOffset: number,
    viewOf?: Lease,
    strides?: readonly number[],
  ) {
    this.device = device;
    this.dtype = dtype;
    this.shape = shape;
    this.length = lengthOf(shape);
    this.#strides = strides;
    this.isContiguous = strides === undefined || isContiguous({ shape, strides });
    this.storage = storage;
    this.byteOffset = byteOffset;
    this.#isView = viewOf !== undefined;
    if (viewOf === undefined) storage.belongTo(this);
    this.#lease = viewOf ?? new Lease(storage, device.core);
  }

  /** What messages call it. */
  get label(): string {
    return `${this.dtype}[${this.shape.join(', ')}]`;
  }

  /** `length` times the size of an element: `ndarray.nbytes`. */
  get byteLength(): number {
    return this.length * DTYPES[this.dtype].byteSize;
  }

  /** In elements, not bytes as CuPy and Warp have them; negative where an axis runs backwards. */
  get strides(): readonly number[] {
    this.#strides ??= Object.freeze(contiguousStrides(this.shape));
    return this.#strides;
  }

  /** Where it is on the device: `CUdeviceptr`, `ndarray.data.ptr`, `wp.array.ptr`. The caller orders and keeps alive. Throws StateError until the device has made it. */
  get nativePointer(): bigint {
    this.#check();
    const address = this.device.core.channel.memoryAddress(this.storage.handle);
    if (address === undefined) {
      const device = this.device.core.name;
      throw new StateError('ERR_MILLRACE_STATE', `Device ${device} has not allocated array ${this.label} yet.`, { device });
    }
    return address + BigInt(this.storage.base + this.byteOffset);
  }

  /** A view is disposed with the array it is a view of. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.storage.isDisposed;
  }

  /**
   * A view by one index an axis: undefined keeps it, a number takes one element and drops it (negative counts from the end), and
   * [start, stop, step] is Python's slice. Axes behind the last index are kept: `a[1, ::-2]` is `a.view(1, [undefined, undefined, -2])`.
   * Throws ArgumentError for an index outside the shape, a step of 0 and for what is no whole number.
   */
  view(...index: readonly AxisIndex[]): DeviceArray<D> {
    this.#check();
    const { offset, shape, strides } = indexed(this, index);
    return this.#view({ shape, strides }, offset);
  }

  /** A view with its axes in this order, reversed where none is given: `ndarray.transpose`. Throws ArgumentError for what is no permutation. */
  transpose(axes?: readonly number[]): DeviceArray<D> {
    this.#check();
    return this.#view(transposed(this, axes), 0);
  }

  /**
   * A view of elements `start` to `end`, in flat order and of one dimension: `a.ravel()[start:end]`. Negative counts from the end,
   * what lies outside is cut. Throws ArgumentError for what is no whole number, and where no one stride gives that order.
   */
  subarray(start: number, end?: number): DeviceArray<D> {
    this.#check();
    const [from, to] = clampRange(start, end, this.length);
    const strides = reshapedStrides(this, [this.length]);
    if (strides === undefined) throw this.#gathered('one dimension');
    const stride = strides[0] as number;
    return this.#view({ shape: [to - from], strides }, from * stride);
  }

  /**
   * A view of all elements, in flat order, in another shape: `reshape` of CuPy and Warp, never a copy. Throws ArgumentError where the
   * number of elements differs, and where no strides give that order: `clone()` gives an array that takes every shape.
   */
  reshape(shape: Shape): DeviceArray<D> {
    this.#check();
    const dimensions = checkReshape(shape, this.length);
    const strides = reshapedStrides(this, dimensions);
    if (strides === undefined) throw this.#gathered(`shape ${show(dimensions)}`, shape);
    return this.#view({ shape: dimensions, strides }, 0);
  }

  /**
   * A contiguous array of its own with the same elements, made by `stream` or else the current stream of the device: `ndarray.copy`,
   * `wp.clone`. Throws as the factories of the device do, and ArgumentError for a stream of another device.
   */
  clone(stream: Stream = this.device.stream): DeviceArray<D> {
    this.#check();
    if ((stream as { readonly device?: unknown } | null)?.device !== this.device) {
      throw badArgument('stream', stream, `The stream (${show(stream)}) is not a stream of device ${this.device.info.id}.`);
    }
    const copy = stream.allocate(this.shape, this.dtype);
    try {
      stream.copy(copy, this);
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
    return copy;
  }

  /**
   * The elements in flat order (f16 as raw bits): `ndarray.get()`, `wp.array.numpy()`. Waits for the last writer only. A fresh plain
   * array, or `into`, whose contents are unspecified until the promise settles. Rejects with UpstreamError when what wrote it failed,
   * ArgumentError when `into` has another type or length, AbortError, WaitTimeoutError or DeviceLostError.
   */
  read(opts?: WaitOptions): Promise<HostOf<ArrayBuffer>[D]>;
  read<H extends HostOf[D]>(opts: WaitOptions & { readonly into: H }): Promise<H>;
  read(opts?: WaitOptions & { readonly into?: HostOf[D] }): Promise<HostOf[D]> {
    this.#check();
    return readArray(this.device.readStream(this.storage, this.byteOffset, this.byteOffset + this.byteLength), this, opts?.into, opts);
  }

  /**
   * One element, by one index a dimension: `ndarray.item(*index)`. Rejects with ArgumentError for a wrong number of indices or one
   * outside the shape (none is negative), and as `read` does.
   */
  async item(...index: readonly number[]): Promise<HostValue<D>> {
    this.#check();
    checkInteger('number of indices', index.length, this.shape.length, this.shape.length);
    for (const [axis, value] of index.entries()) checkInteger(`index of dimension ${axis}`, value, 0, (this.shape[axis] as number) - 1);
    const [element] = (await this.view(...index).read()) as ArrayLike<number | bigint> & Iterable<number | bigint>;
    return elementValue(this.dtype, element as number | bigint);
  }

  /**
   * 64 bytes by which `device.openIpcArray` of another process opens it: `cuIpcGetMemHandle`. Keep the array as long as others use it.
   * Rejects with StateError for what `device.interprocess` has not made, for a view, and once disposed.
   */
  async ipcHandle(): Promise<Uint8Array<ArrayBuffer>> {
    this.#check();
    const { storage, byteOffset, byteLength } = this;
    return exportMemory(storage, this.label, byteOffset !== 0 || byteLength !== storage.byteLength);
  }

  /** Frees the memory in stream order, after every operation that uses it: `cuMemFreeAsync`. Of a view: only the view. Never throws. */
  [Symbol.dispose](): void {
    if (this.isDisposed) return;
    this.#isDisposed = true;
    if (!this.#isView) this.#lease.end();
  }

  /** `offset` in elements. */
  #view({ shape, strides }: Layout, offset: number): DeviceArray<D> {
    const byteOffset = this.byteOffset + offset * DTYPES[this.dtype].byteSize;
    const [dimensions, steps] = [Object.freeze(shape), Object.freeze(strides)];
    return new DeviceArray(this.device, this.dtype, dimensions, this.storage, byteOffset, this.#lease, steps);
  }

  #gathered(what: string, value: unknown = this): ArgumentError {
    const message = `Array ${this.label} with strides ${show([...this.strides])} has no view with ${what}: clone() it first.`;
    return badArgument(value === this ? 'array' : 'shape', value, message);
  }

  /** @internal The bytes of the storage that it reaches, with what lies between its elements. */
  get byteRange(): readonly [start: number, end: number] {
    if (this.isContiguous) return [this.byteOffset, this.byteOffset + this.byteLength];
    const { byteSize } = DTYPES[this.dtype];
    const [low, high] = reachOf(this);
    return [this.byteOffset + low * byteSize, this.byteOffset + high * byteSize];
  }

  /** @internal The same, as records name it. */
  get region(): Region {
    const { storage, byteOffset } = this;
    if (this.isContiguous) return flatRegion(storage, byteOffset, this.byteLength);
    const [start, end] = this.byteRange;
    return { storage, offset: byteOffset, start, end, strides: this.strides };
  }

  /** @internal */
  get elements(): Elements {
    return { shape: this.shape, byteSize: DTYPES[this.dtype].byteSize, byteLength: this.byteLength };
  }

  #check(): void {
    if (this.isDisposed) throw this.disposedError();
  }

  /** @internal */
  disposedError(): StateError {
    return disposedError(`Array ${this.label}`, this.device.core.name);
  }
}

describeAs(
  DeviceArray.prototype,
  ({ dtype, shape, device, isDisposed }) =>
    `DeviceArray ${dtype} [${shape.join(', ')}] on ${device.info.id}${isDisposed ? ' (disposed)' : ''}`,
  ({ dtype, shape, device, isDisposed }) => ({ dtype, shape, device: device.info.id, isDisposed }),
);
