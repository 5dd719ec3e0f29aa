// An array in device memory. It has a handle and a shape, and no bytes in JavaScript. It is made, filled and freed in stream order, so
// none of these calls waits.
import { badArgument, checkInteger, refuseSurplus, show } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import type { ArgumentError } from '../base/errors.js';
import { boxesOf } from '../elements/index-boxes.js';
import { checkRank, type ListOptions, nestedOf, type NestedOf } from '../elements/array-text.js';
import { DTYPES, type DType, type HostOf, type HostValue } from '../elements/dtype.js';
import { elementValue } from '../elements/scalar-bits.js';
import { clampRange, checkReshape, type Shape } from '../elements/shape.js';
import { type AxisIndex, indexed, type Layout, reshapedStrides, transposed } from '../elements/strides.js';
import type { ArrayToken } from '../memory/array-token.js';
import { exportMemory } from '../memory/interprocess-memory.js';
import type { Lease } from '../memory/lease.js';
import type { Storage } from '../memory/storage.js';
import { checkWaitCall, type WaitOptions } from '../waits/wait.js';
import { refuseInCapture } from './active-capture.js';
import { printed, type PrintOptions } from './array-print.js';
import type { Device } from './device.js';
import { noted } from './made-arrays.js';
import { type ReadableOptions, readableOf } from './readable.js';
import { readArray } from './readback.js';
import { shareArray } from './share-array.js';
import type { Stream } from './stream.js';
import { StridedArray } from './strided-array.js';

/**
 * Device memory with a dtype, a shape and strides: `cupy.ndarray`, `wp.array`. Declare arrays with `using`. After disposal, the methods of
 * the array and every call that takes it throw a StateError (async ones reject). Views share the memory and copy nothing.
 * @example using x = device.zeros([1024, 768], f32);
 */
export class DeviceArray<D extends DType = DType> extends StridedArray<D> {
  readonly #maker: Device;

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
    super(device.core, dtype, shape, storage, byteOffset, viewOf, strides);
    this.#maker = device;
  }

  /**
   * The device that the memory belongs to: the Device object through which the array was made or, once that object is closed, another one
   * of the same device.
   */
  get device(): Device {
    return this.#maker.context.deviceOf(this.#maker);
  }

  /**
   * A view with one index per axis: undefined keeps the axis, a number selects one element and drops the axis (negative counts from the
   * end), and [start, stop, step] is Python's slice. Axes without an index are kept: `a[1, ::-2]` is `a.view(1, [undefined, undefined,
   * -2])`. Throws ArgumentError for an index outside the shape, a step of 0, or a value that is not an integer.
   * @example const column = image.view(undefined, 1); // image[:, 1]
   */
  view(...index: readonly AxisIndex[]): DeviceArray<D> {
    this.checkUsable();
    const { offset, shape, strides } = indexed(this, index);
    return this.#view({ shape, strides }, offset);
  }

  /** A view with its axes in this order, default reversed: `ndarray.transpose`. Throws ArgumentError if `axes` is not a permutation. */
  transpose(axes?: readonly number[]): DeviceArray<D> {
    if (arguments.length > 1) refuseSurplus('transpose', arguments, 1);
    this.checkUsable();
    return this.#view(transposed(this, axes), 0);
  }

  /**
   * A one-dimensional view of elements `start` to `end` (exclusive) in flat order: `a.ravel()[start:end]`. Negative numbers count from
   * the end; the range is clipped to the array. Throws ArgumentError if a bound is not an integer, or if no single stride gives flat
   * order.
   */
  subarray(start: number, end?: number): DeviceArray<D> {
    if (arguments.length > 2) refuseSurplus('subarray', arguments, 2);
    this.checkUsable();
    const view = this.#flatRange(...clampRange(start, end, this.length));
    if (view === undefined) throw this.#gathered('one dimension');
    return view;
  }

  /**
   * A view of all elements in flat order with another shape: `reshape` of CuPy and Warp, never a copy. Throws ArgumentError if the number
   * of elements differs, or if no strides give flat order; the result of `clone()` takes every shape.
   */
  reshape(shape: Shape): DeviceArray<D> {
    if (arguments.length > 1) refuseSurplus('reshape', arguments, 1);
    this.checkUsable();
    const dimensions = checkReshape(shape, this.length);
    const strides = reshapedStrides(this, dimensions);
    if (strides === undefined) throw this.#gathered(`shape ${show(dimensions)}`, shape);
    return this.#view({ shape: dimensions, strides }, 0);
  }

  /**
   * A contiguous copy, made on `stream` (default: the device's current stream): `ndarray.copy`, `wp.clone`. Throws as the factories of
   * the device do, and ArgumentError for a stream of another device.
   */
  clone(stream: Stream = this.device.stream): DeviceArray<D> {
    if (arguments.length > 1) refuseSurplus('clone', arguments, 1);
    this.checkUsable();
    // An array of the device has a core, too.
    if ((stream as Partial<Stream> | null)?.allocate === undefined || stream.core !== this.core) {
      throw badArgument('stream', stream, `The stream (${show(stream)}) is not a stream of device ${this.core.name}.`);
    }
    const copy = stream.allocate(this.shape, this.dtype);
    try {
      stream.copy(copy, this);
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
    return noted(copy);
  }

  /**
   * Copies the elements to the host in flat order (f16 and bf16 as raw bits): `ndarray.get()`, `wp.array.numpy()`. Waits for the last writer only.
   * Resolves to a new typed array, or to `into`, whose contents are unspecified until the promise settles. Rejects with UpstreamError if
   * the operation that wrote the array failed, ArgumentError if `into` has another type or length, AbortError, WaitTimeoutError or
   * DeviceLostError.
   * @example const host = await y.read();
   */
  read(opts?: WaitOptions): Promise<HostOf<ArrayBuffer>[D]>;
  read<H extends HostOf[D]>(opts: WaitOptions & { readonly into: H }): Promise<H>;
  read(opts?: WaitOptions & { readonly into?: HostOf[D] }): Promise<HostOf[D]> {
    if (arguments.length > 1) refuseSurplus('read', arguments, 1);
    refuseInCapture('readback', 'read the array after a launch of the graph, or copy it to a pinned array in the graph');
    return this.#read(opts);
  }

  async #read(opts: (WaitOptions & { readonly into?: HostOf[D] }) | undefined): Promise<HostOf[D]> {
    this.checkUsable();
    return readArray(
      this.#maker.context.readStream(this.storage, this.byteOffset, this.byteOffset + this.byteLength),
      this,
      opts?.into,
      opts,
    );
  }

  /**
   * The bytes of the elements in flat order, as a web stream: for `new Response(stream)`, `Readable.fromWeb(stream)` and `for await`. Each
   * chunk is a new Uint8Array. A chunk is read from the device, after the last writer of its elements, at most one chunk ahead of the
   * consumer, so the host needs memory for a few chunks and not for the array. A chunk contains the writes that were submitted before the
   * chunk was read: do not write to the array before the stream has ended, or stream a `clone()`.
   *
   * The stream errors with the errors of `read`, with a StateError when the array is disposed before the last chunk was read, and with an
   * AbortError when `signal` aborts. Canceling the stream ends it. Throws ArgumentError for bad options and StateError after disposal.
   * @example await writeFile('x.bin', array.toReadable({ chunkBytes: 1 << 22 }));
   */
  toReadable(opts?: ReadableOptions): ReadableStream<Uint8Array<ArrayBuffer>> {
    if (arguments.length > 1) refuseSurplus('toReadable', arguments, 1);
    this.checkUsable();
    return readableOf(this, (from, to, wait) => this.#readFlat(from, to, wait), opts);
  }

  /**
   * Reads one element, by one index per dimension, or the only element without an index: `ndarray.item(*index)`. Rejects with
   * ArgumentError for a wrong number of indices, for an index outside the shape and for a negative index, and with the errors of `read`.
   */
  item(...index: readonly number[]): Promise<HostValue<D>> {
    refuseInCapture('readback', 'read the element after a launch of the graph, or copy it to a pinned array in the graph');
    return this.#item(index);
  }

  async #item(index: readonly number[]): Promise<HostValue<D>> {
    this.checkUsable();
    const isOnly = index.length === 0 && this.length === 1;
    if (!isOnly) checkInteger('number of indices', index.length, this.shape.length, this.shape.length);
    for (const [axis, value] of index.entries()) checkInteger(`index of dimension ${axis}`, value, 0, (this.shape[axis] as number) - 1);
    const place = isOnly ? this.shape.map(() => 0) : index;
    const [element] = (await this.view(...place).read()) as ArrayLike<number | bigint> & Iterable<number | bigint>;
    return elementValue(this.dtype, element as number | bigint);
  }

  /**
   * The elements as nested lists: `ndarray.tolist()`, `wp.array.list()`, `torch.Tensor.tolist()`. Numbers, also those of f16 and bf16;
   * bigints for 64-bit integers, booleans for `bool`; a single value for shape []. With `rank`, the number of dimensions, the lists have
   * their type: `number[][]` instead of `Nested<number>`. Rejects as `read` does, and with ArgumentError for another rank.
   * @example console.log(await x.list()); // [ [ 1, 2 ], [ 3, 4 ] ]
   * @example const [first] = await x.view(0).list({ rank: 1 });
   */
  list<const R extends ListOptions['rank'] = undefined>(opts?: WaitOptions & ListOptions<R>): Promise<NestedOf<HostValue<D>, R>> {
    if (arguments.length > 1) refuseSurplus('list', arguments, 1);
    refuseInCapture('readback', 'list the array after a launch of the graph');
    return this.#list(opts);
  }

  async #list<R extends ListOptions['rank']>(opts: (WaitOptions & ListOptions<R>) | undefined): Promise<NestedOf<HostValue<D>, R>> {
    const { rank, ...wait } = opts ?? {};
    checkWaitCall(opts, 'rank');
    checkRank({ rank }, this.shape);
    return nestedOf(this.dtype, this.shape, await this.#read(wait)) as NestedOf<HostValue<D>, R>;
  }

  /**
   * The elements as text, as NumPy prints them: `print(a)`, `numpy.array2string`. Of more than 1,000 elements only the edges are read and
   * shown. Rejects as `read` does, and with ArgumentError for bad options. It needs the device, so it returns a promise; `String(array)`
   * says so.
   * @example console.log(await x.toString());
   */
  override toString(opts?: PrintOptions): Promise<string> {
    if (arguments.length > 1) refuseSurplus('toString', arguments, 1);
    refuseInCapture('readback', 'print the array after a launch of the graph');
    return this.#print(opts);
  }

  async #print(opts: PrintOptions | undefined): Promise<string> {
    this.checkUsable();
    return printed(this, opts, (ranges, wait) => this.view(...ranges).read(wait));
  }

  /**
   * What `String(array)` and template literals show: what the array is, and how its elements are shown. Throws ArgumentError where
   * JavaScript needs a number, as in `x ** 2`, `x < 0` and `Math.sqrt(x)`.
   */
  [Symbol.toPrimitive](hint: string): string {
    if (hint !== 'number') return `${lineOf(this)}: await array.toString() or print(array) shows its elements`;
    const message =
      `JavaScript's operators and Math do not work on arrays (${lineOf(this)}): call functions of millrace/ops, such as power(x, 2) and less(x, 0), ` +
      'or elementwise((v) => v ** 2)(x). await x.item() gives the number of an array of one element.';
    throw badArgument('array', this, message);
  }

  /**
   * Returns a token with which other threads that have the device open (`device.share`) get an array of the same memory: `device.adopt`.
   * The token is plain data for `postMessage`. The adopting stream waits, on the device, for the uses of the array that this thread has
   * submitted before `share`. Other threads do not know of later uses: share again, or await them. Dispose the array only after the other
   * threads have adopted it; each thread disposes its own. Throws StateError after disposal.
   * @example worker.postMessage({ x: x.share() });
   */
  share(): ArrayToken<D> {
    if (arguments.length > 0) refuseSurplus('share', arguments, 0);
    this.checkUsable();
    const over = this.core.refuseIfOver();
    if (over !== undefined) throw over;
    return shareArray(this);
  }

  /**
   * Resolves to the 64 bytes that `device.openIpcArray` of another process takes: `cuIpcGetMemHandle`. Keep the array alive while other
   * processes use it. Rejects with StateError for an array that `device.interprocess` did not make, for a view, and after disposal.
   */
  async ipcHandle(): Promise<Uint8Array<ArrayBuffer>> {
    if (arguments.length > 0) refuseSurplus('ipcHandle', arguments, 0);
    this.checkUsable();
    const { storage, byteOffset, byteLength } = this;
    return exportMemory(storage, this.label, byteOffset !== 0 || byteLength !== storage.byteLength);
  }

  /**
   * @internal A one-dimensional view from the first element in memory to the last, with the gaps between the elements, and the place of
   * element 0 in it: for kernels that take strides.
   */
  get span(): readonly [elements: DeviceArray<D>, first: number] {
    this.checkUsable();
    if (this.isContiguous && this.shape.length === 1) return [this, 0];
    const [start, end] = this.byteRange;
    const { byteSize } = DTYPES[this.dtype];
    const whole = new DeviceArray(this.#maker, this.dtype, [(end - start) / byteSize], this.storage, start, this.lease);
    return [whole, (this.byteOffset - start) / byteSize];
  }

  /** `offset` in elements. */
  #view({ shape, strides }: Layout, offset: number): DeviceArray<D> {
    const byteOffset = this.byteOffset + offset * DTYPES[this.dtype].byteSize;
    const [dimensions, steps] = [Object.freeze(shape), Object.freeze(strides)];
    return new DeviceArray(this.#maker, this.dtype, dimensions, this.storage, byteOffset, this.lease, steps);
  }

  #gathered(what: string, value: unknown = this): ArgumentError {
    const message = `Array ${this.label} with strides ${show([...this.strides])} has no view with ${what}: clone() it first.`;
    return badArgument(value === this ? 'array' : 'shape', value, message);
  }

  /** The bytes of elements `from` to `to` in flat order. */
  async #readFlat(from: number, to: number, opts: WaitOptions): Promise<Uint8Array<ArrayBuffer>> {
    this.checkUsable();
    const flat = this.#flatRange(from, to);
    if (flat !== undefined) {
      const { buffer, byteOffset, byteLength } = await flat.read(opts);
      return new Uint8Array(buffer, byteOffset, byteLength);
    }
    const { make, byteSize } = DTYPES[this.dtype];
    const bytes = new Uint8Array((to - from) * byteSize);
    let at = 0;
    // This submits all parts in one turn of the event loop.
    const parts = boxesOf(this.shape, from, to).map(async ({ index, length }) => {
      const into = new make(bytes.buffer, at, length);
      at += length * byteSize;
      await this.view(...index).read({ ...opts, into: into as never });
    });
    await Promise.all(parts);
    return bytes;
  }

  /** A view of elements `from` to `to` in flat order; undefined if no single stride gives that order. */
  #flatRange(from: number, to: number): DeviceArray<D> | undefined {
    const strides = reshapedStrides(this, [this.length]);
    return strides && this.#view({ shape: [to - from], strides }, from * (strides[0] as number));
  }
}

function lineOf({ dtype, shape, device, isDisposed }: DeviceArray): string {
  return `DeviceArray ${dtype} [${shape.join(', ')}] on ${device.info.id}${isDisposed ? ' (disposed)' : ''}`;
}

describeAs(DeviceArray.prototype, lineOf, ({ dtype, shape, device, isDisposed }) => ({ dtype, shape, device: device.info.id, isDisposed }));
