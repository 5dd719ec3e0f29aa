// An array in device memory: a handle, a shape, and no bytes in JavaScript. Made, filled and freed in stream order, so
// none of it waits.
import { clampRange, checkInteger, checkReshape, lengthOf } from './arguments.js';
import { describeAs } from './describe.js';
import type { Device } from './device.js';
import { DTYPES, type DType, type HostOf, type HostValue } from './dtype.js';
import type { StateError } from './errors.js';
import { exportArray } from './interprocess-memory.js';
import type { Shape } from './kernel.js';
import { disposedError, Lease } from './lease.js';
import { elementValue } from './scalar-bits.js';
import { readArray } from './readback.js';
import type { Storage } from './storage.js';
import type { WaitOptions } from './wait.js';

/**
 * Dense device memory with a dtype and a shape: `cupy.ndarray`, `wp.array`. Declare it with `using`. Once it is disposed, its methods
 * and every call that is given it throw (or, async, reject with) a StateError.
 */
export class DeviceArray<D extends DType = DType> implements Disposable {
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. At most 8 dimensions; [] is one element. */
  readonly shape: readonly number[];
  /** Elements: the product of `shape`. */
  readonly length: number;
  readonly device: Device;
  /** @internal */
  readonly storage: Storage;
  /** @internal Where it starts in its storage. */
  readonly byteOffset: number;
  readonly #lease: Lease;
  readonly #isView: boolean;
  #isDisposed = false;

  /** @internal Made by the factories of devices and streams. */
  constructor(device: Device, dtype: D, shape: readonly number[], storage: Storage, byteOffset: number, viewOf?: Lease) {
    this.device = device;
    this.dtype = dtype;
    this.shape = shape;
    this.length = lengthOf(shape);
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

  get byteLength(): number {
    return this.length * DTYPES[this.dtype].byteSize;
  }

  /** In elements, not bytes as CuPy and Warp have them; the last dimension is the fastest. */
  get strides(): readonly number[] {
    const strides: number[] = [];
    let stride = 1;
    for (const dimension of this.shape.toReversed()) {
      strides.unshift(stride);
      stride *= dimension;
    }
    return strides;
  }

  /** Always: views are of consecutive elements. */
  get isContiguous(): boolean {
    return true;
  }

  /** A view is disposed with the array it is a view of. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.storage.isDisposed;
  }

  /**
   * A view of elements `start` to `end`, in flat order and of one dimension: `a.ravel()[start:end]`. Negative counts from the end,
   * what lies outside is cut. Throws ArgumentError for what is no whole number.
   */
  subarray(start: number, end?: number): DeviceArray<D> {
    this.#check();
    const [from, to] = clampRange(start, end, this.length);
    return this.#view([to - from], this.byteOffset + from * DTYPES[this.dtype].byteSize);
  }

  /** A view of all elements in another shape: `reshape` of CuPy and Warp. Throws ArgumentError where the number of elements differs. */
  reshape(shape: Shape): DeviceArray<D> {
    this.#check();
    return this.#view(checkReshape(shape, this.length), this.byteOffset);
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
    let flat = 0;
    index.forEach((value, axis) => {
      const dimension = this.shape[axis] as number;
      flat = flat * dimension + checkInteger(`index of dimension ${axis}`, value, 0, dimension - 1);
    });
    const [element] = (await this.subarray(flat, flat + 1).read()) as ArrayLike<number | bigint> & Iterable<number | bigint>;
    return elementValue(this.dtype, element as number | bigint);
  }

  /**
   * 64 bytes by which `device.openIpcArray` of another process opens it: `cuIpcGetMemHandle`. Keep the array as long as others use it.
   * Rejects with StateError for what `device.interprocess` has not made, for a view, and once disposed.
   */
  async ipcHandle(): Promise<Uint8Array<ArrayBuffer>> {
    this.#check();
    return exportArray(this);
  }

  /** Frees the memory in stream order, after every operation that uses it: `cuMemFreeAsync`. Of a view: only the view. Never throws. */
  [Symbol.dispose](): void {
    if (this.isDisposed) return;
    this.#isDisposed = true;
    if (!this.#isView) this.#lease.end();
  }

  #view(shape: readonly number[], byteOffset: number): DeviceArray<D> {
    return new DeviceArray(this.device, this.dtype, Object.freeze(shape), this.storage, byteOffset, this.#lease);
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
