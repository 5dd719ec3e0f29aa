// An array in device memory: a handle, a shape, and no bytes in JavaScript. Made, filled and freed in stream order, so
// none of it waits.
import { clampRange, checkInteger, checkReshape, lengthOf } from './arguments.js';
import { describeAs } from './describe.js';
import type { Device } from './device.js';
import { DTYPES, type DType, type HostOf, type HostValue } from './dtype.js';
import type { StateError } from './errors.js';
import type { Shape } from './kernel.js';
import { disposedError, Lease } from './lease.js';
import { elementValue } from './scalar-bits.js';
import type { Storage } from './storage.js';
import type { WaitOptions } from './wait.js';

export class DeviceArray<D extends DType = DType> implements Disposable {
  readonly dtype: D;
  readonly shape: readonly number[];
  /** Elements. */
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
    this.#lease = viewOf ?? new Lease(storage, device.core);
  }

  /** What messages call it. */
  get label(): string {
    return `${this.dtype}[${this.shape.join(', ')}]`;
  }

  get byteLength(): number {
    return this.length * DTYPES[this.dtype].byteSize;
  }

  /** In elements; the last dimension is the fastest. */
  get strides(): readonly number[] {
    const strides: number[] = [];
    let stride = 1;
    for (const dimension of this.shape.toReversed()) {
      strides.unshift(stride);
      stride *= dimension;
    }
    return strides;
  }

  get isContiguous(): boolean {
    return true;
  }

  /** A view is disposed with the array it is a view of. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.storage.isDisposed;
  }

  /** A view of elements `start` to `end`, in flat order; negative counts from the end. */
  subarray(start: number, end?: number): DeviceArray<D> {
    this.#check();
    const [from, to] = clampRange(start, end, this.length);
    return this.#view([to - from], this.byteOffset + from * DTYPES[this.dtype].byteSize);
  }

  /** A view of all elements in another shape. */
  reshape(shape: Shape): DeviceArray<D> {
    this.#check();
    return this.#view(checkReshape(shape, this.length), this.byteOffset);
  }

  /** Waits for the last writer only. A fresh plain array, or `into`, whose contents are unspecified until the promise settles. */
  read(opts?: WaitOptions): Promise<HostOf<ArrayBuffer>[D]>;
  read<H extends HostOf[D]>(opts: WaitOptions & { readonly into: H }): Promise<H>;
  read(opts?: WaitOptions & { readonly into?: HostOf[D] }): Promise<HostOf[D]> {
    this.#check();
    return this.device.readStream(this.storage).readBack(this, opts?.into, opts);
  }

  /** One element. */
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

  /** Frees the memory in stream order, after every operation that uses it. Of a view: only the view. */
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
