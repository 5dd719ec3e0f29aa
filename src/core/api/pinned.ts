// Page-locked memory as an ordinary typed array. The device copies to and from it at full speed. It is a SharedArrayBuffer, so `data` can be
// posted to a worker thread without a copy.
import { refuseSurplus } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { describeAs } from '../base/describe.js';
import { OutOfMemoryError, type StateError } from '../base/errors.js';
import { nextSerial } from '../base/serial.js';
import { PINNED_STAYS } from '../base/uncloneable.js';
import type { DeviceCore } from '../device/device-core.js';
import type { HostBlock } from '../device/host-block.js';
import { checkRank, type ListOptions, nestedOf, type NestedOf, shownOf, textOf } from '../elements/array-text.js';
import { DTYPES, type DType, type HostOf, type HostValue } from '../elements/dtype.js';
import { clampRange, lengthOf } from '../elements/shape.js';
import { disposedError, Lease } from '../memory/lease.js';
import type { Storage } from '../memory/storage.js';
import { checkStyle, type PrintStyle } from './array-print.js';

/**
 * Page-locked host memory: `cuMemHostRegister`, `cupyx.zeros_pinned`, `wp.array(pinned=True)`. Copies need no staging. Declare pinned
 * arrays with `using`; after disposal, `data`, `subarray` and copies throw a StateError.
 */
export class PinnedArray<D extends DType = DType> implements Disposable {
  /** @internal */
  readonly uncloneable: symbol = PINNED_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** The element type. */
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. */
  readonly shape: readonly number[];
  /** The number of elements: the product of `shape`. */
  readonly length: number;
  readonly #core: DeviceCore;
  readonly #storage: Storage;
  /** @internal */
  readonly byteOffset: number;
  readonly #data: HostOf<SharedArrayBuffer>[D];
  readonly #block: HostBlock;
  readonly #lease: Lease;
  readonly #isView: boolean;
  #isDisposed = false;

  /** @internal Made by `device.pinned`, and by `device.pin` of `data`. */
  constructor(
    core: DeviceCore,
    dtype: D,
    shape: readonly number[],
    storage: Storage,
    block: HostBlock,
    byteOffset: number,
    viewOf?: Lease,
    data?: HostOf<SharedArrayBuffer>[D],
  ) {
    this.#core = core;
    this.dtype = dtype;
    this.shape = shape;
    this.length = lengthOf(shape);
    this.#storage = storage;
    this.byteOffset = byteOffset;
    // Of fixed length: views that follow a growable buffer are fifteen times slower.
    const make = DTYPES[dtype].make;
    this.#data = data ?? (new make(block.buffer, block.byteOffset + byteOffset, this.length) as HostOf<SharedArrayBuffer>[D]);
    this.#block = block;
    this.#isView = viewOf !== undefined;
    if (viewOf === undefined) storage.belongTo(this);
    this.#lease = viewOf ?? new Lease(storage, core, block);
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#core;
  }

  /** @internal */
  get storage(): Storage {
    return this.#storage;
  }

  /**
   * The memory itself, as a typed array over a SharedArrayBuffer, which no other array uses. A pending copy into the array changes the
   * elements at any time. Some APIs refuse shared memory: pass them the result of `read`. Throws StateError after disposal, because the
   * memory may then belong to another pinned array.
   */
  get data(): HostOf<SharedArrayBuffer>[D] {
    if (this.isDisposed) throw this.disposedError();
    return this.#data;
  }

  /** @internal The memory, also after disposal. */
  get bytes(): HostOf<SharedArrayBuffer>[D] {
    return this.#data;
  }

  /** `length` times the size of an element. */
  get byteLength(): number {
    return this.#data.byteLength;
  }

  /** True after disposal. Disposing an array also disposes its views. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.storage.isDisposed;
  }

  /**
   * Copies the present elements to a new typed array over an ordinary ArrayBuffer, at the call: `ndarray.copy()` of CuPy's pinned arrays.
   * Use it for APIs that refuse shared memory (`Response`, `fetch`, `crypto.subtle`, transfer lists), and for bytes that later copies must
   * not change. `read` waits for nothing: await the `done` of a copy into this array first. It blocks the event loop for about 1 ms per
   * MiB. Throws StateError after disposal, OutOfMemoryError if the host has not enough memory.
   * @example const response = new Response(pinned.read());
   */
  read(): HostOf<ArrayBuffer>[D] {
    if (arguments.length > 0) refuseSurplus('read', arguments, 0);
    const { data } = this;
    const host = plainArray(this.dtype, this.byteLength);
    host.set(data as never);
    return host;
  }

  /** The present elements as nested lists, as `list` of a device array: `ndarray.tolist()`. Throws StateError after disposal. */
  list<const R extends ListOptions['rank'] = undefined>(opts: ListOptions<R> = {}): NestedOf<HostValue<D>, R> {
    if (arguments.length > 1) refuseSurplus('list', arguments, 1);
    checkOptionNames(opts, ['rank']);
    checkRank(opts, this.shape);
    return nestedOf(this.dtype, this.shape, this.data) as NestedOf<HostValue<D>, R>;
  }

  /** The present elements as text, as NumPy prints them. Throws StateError after disposal, ArgumentError for bad options. */
  toString(opts?: PrintStyle): string {
    if (arguments.length > 1) refuseSurplus('toString', arguments, 1);
    const style = checkStyle(opts);
    return textOf(this.dtype, this.shape, shownOf(this.dtype, this.shape, this.data, style), style);
  }

  /**
   * A one-dimensional view of elements `start` to `end` (exclusive). Negative numbers count from the end; the range is clipped to the
   * array. Throws ArgumentError if a bound is not an integer.
   */
  subarray(start: number, end?: number): PinnedArray<D> {
    if (arguments.length > 2) refuseSurplus('subarray', arguments, 2);
    if (this.isDisposed) throw this.disposedError();
    const [from, to] = clampRange(start, end, this.length);
    const byteOffset = this.byteOffset + from * DTYPES[this.dtype].byteSize;
    return new PinnedArray(this.core, this.dtype, Object.freeze([to - from]), this.storage, this.#block, byteOffset, this.#lease);
  }

  /**
   * Releases the memory for the next pinned array once every operation that uses it has finished. Typed arrays that were taken from
   * `data` before must not be used afterwards. Memory given to `device.pin` is then unlocked (`cuMemHostUnregister`) and keeps its
   * contents. Never throws.
   */
  [Symbol.dispose](): void {
    if (this.isDisposed) return;
    this.#isDisposed = true;
    if (!this.#isView) this.#lease.end();
  }

  /** @internal It was detached from a lane's item, which refers to it no more. */
  watch(): void {
    this.#lease.watch();
  }

  /** @internal Disposes the array, and gives its memory to another one: only if its storage `isUnused`. */
  handOver(): { readonly storage: Storage; readonly block: HostBlock } {
    this.#isDisposed = true;
    return { storage: this.#lease.handOver(), block: this.#block };
  }

  /** @internal */
  disposedError(): StateError {
    return disposedError('A pinned array', this.core.name, this.storage);
  }
}

function plainArray<D extends DType>(dtype: D, byteLength: number): HostOf<ArrayBuffer>[D] {
  const { make, byteSize } = DTYPES[dtype];
  try {
    return new make(new ArrayBuffer(byteLength), 0, byteLength / byteSize) as HostOf<ArrayBuffer>[D];
  } catch (cause) {
    const message = `The host has not enough memory for the array that read() returns (${byteLength} bytes).`;
    throw new OutOfMemoryError('ERR_MILLRACE_MEMORY', message, byteLength, 0, { cause });
  }
}

describeAs(
  PinnedArray.prototype,
  ({ dtype, shape, core, isDisposed }) => `PinnedArray ${dtype} [${shape.join(', ')}] of ${core.name}${isDisposed ? ' (disposed)' : ''}`,
  ({ dtype, shape, core, isDisposed }) => ({ dtype, shape, device: core.name, isDisposed }),
);
