// The part of a DeviceArray that records need: an element type, a shape, and where its bytes are in device memory. Launches, fills,
// copies and reads take this class, so they depend on no public class.
import { StateError } from '../base/errors.js';
import { nextSerial } from '../base/serial.js';
import { ARRAY_STAYS } from '../base/uncloneable.js';
import { type Elements, flatRegion, type Region } from '../copies/memory-region.js';
import type { DeviceCore } from '../device/device-core.js';
import type { ArrayKind } from '../kernels/array-kinds.js';
import { DTYPES, type DType } from '../elements/dtype.js';
import { lengthOf } from '../elements/shape.js';
import { contiguousStrides, isContiguous, reachOf } from '../elements/strides.js';
import { MAX_EXTENT } from '../kernels/launch-geometry.js';
import { disposedError, Lease } from '../memory/lease.js';
import type { Storage } from '../memory/storage.js';
import { refuseApart } from '../base/apart.js';

/** A strided range of device memory. DeviceArray is its only subclass. */
export abstract class StridedArray<D extends DType = DType> implements Disposable {
  /** @internal */
  readonly uncloneable: symbol = ARRAY_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** The element type: `ndarray.dtype`, `wp.array.dtype`. */
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. At most 8 dimensions; [] is one element. */
  readonly shape: readonly number[];
  /** The number of elements: the product of `shape`. `ndarray.size`, `wp.array.size`. */
  readonly length: number;
  /** Whether the elements follow each other in memory in row-major order. Kernels accept contiguous arrays only. */
  readonly isContiguous: boolean;
  readonly #core: DeviceCore;
  readonly #storage: Storage;
  /** @internal Where its first element is in its storage. */
  readonly byteOffset: number;
  readonly #lease: Lease;
  readonly #kind: ArrayKind | undefined;
  readonly #byteLength: number;
  readonly #isView: boolean;
  #strides: readonly number[] | undefined;
  #isDisposed = false;

  /** @internal `viewOf`: the lease of the array that this one is a view of. Without `strides` the elements are contiguous. */
  constructor(
    core: DeviceCore,
    dtype: D,
    shape: readonly number[],
    storage: Storage,
    byteOffset: number,
    viewOf?: Lease,
    strides?: readonly number[],
  ) {
    this.#core = core;
    this.dtype = dtype;
    this.shape = shape;
    this.length = lengthOf(shape);
    this.#byteLength = this.length * DTYPES[dtype].byteSize;
    this.#strides = strides;
    this.isContiguous = strides === undefined || isContiguous({ shape, strides });
    this.#kind = this.isContiguous && this.length <= MAX_EXTENT ? core.arrayKinds.of(dtype, shape.length) : undefined;
    this.#storage = storage;
    this.byteOffset = byteOffset;
    this.#isView = viewOf !== undefined;
    if (viewOf === undefined) storage.belongTo(this);
    this.#lease = viewOf ?? new Lease(storage, core);
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#core;
  }

  /** @internal */
  get storage(): Storage {
    return this.#storage;
  }

  /** @internal Shared with the views of the array. */
  protected get lease(): Lease {
    return this.#lease;
  }

  /** @internal Undefined for an array that no kernel takes. */
  get kind(): ArrayKind | undefined {
    return this.#kind;
  }

  /** The array's name in messages, for example 'f32[1024, 768]'. */
  get label(): string {
    return `${this.dtype}[${this.shape.join(', ')}]`;
  }

  /** `length` times the size of an element: `ndarray.nbytes`. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** Strides in elements (CuPy and Warp count bytes); negative where an axis runs backwards. */
  get strides(): readonly number[] {
    this.#strides ??= Object.freeze(contiguousStrides(this.shape));
    return this.#strides;
  }

  /**
   * The device address of the first element: `CUdeviceptr`, `ndarray.data.ptr`, `wp.array.ptr`. The caller must order its accesses and
   * keep the array alive. Throws StateError until the device has allocated the memory.
   */
  get nativePointer(): bigint {
    this.checkUsable();
    refuseApart(this.core, 'A pointer');
    this.storage.whenUsed?.();
    this.storage.isExposed = true;
    const address = this.core.channel.memoryAddress(this.storage.handle);
    if (address === undefined) {
      const device = this.core.name;
      throw new StateError('ERR_MILLRACE_STATE', `Device ${device} has not allocated array ${this.label} yet: await synchronize() first.`, {
        device,
      });
    }
    return address + BigInt(this.storage.base + this.byteOffset);
  }

  /** True after disposal. Disposing an array also disposes its views. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.storage.isDisposed;
  }

  /**
   * Frees the memory in stream order, after every operation that uses it: `cuMemFreeAsync`. On a view it disposes the view only. Never
   * throws.
   */
  [Symbol.dispose](): void {
    if (this.isDisposed) return;
    this.#isDisposed = true;
    if (!this.#isView) this.lease.end();
  }

  /** @internal It was detached from a lane's item, which refers to it no more. */
  watch(): void {
    this.#lease.watch();
  }

  /** @internal Disposes the array, and gives its memory to another one: only if its storage `isUnused`. */
  handOver(): Storage {
    this.#isDisposed = true;
    return this.#lease.handOver();
  }

  /** @internal The bytes of the storage from its first element to its last, with the gaps between them. */
  get byteRange(): readonly [start: number, end: number] {
    if (this.isContiguous) return [this.byteOffset, this.byteOffset + this.byteLength];
    const { byteSize } = DTYPES[this.dtype];
    const [low, high] = reachOf(this);
    return [this.byteOffset + low * byteSize, this.byteOffset + high * byteSize];
  }

  /** @internal The same, as copies and fills name it. */
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

  /** @internal Throws StateError after disposal. */
  protected checkUsable(): void {
    if (this.isDisposed) throw this.disposedError();
  }

  /** @internal */
  disposedError(): StateError {
    return disposedError(`Array ${this.label}`, this.core.name, this.storage);
  }
}
