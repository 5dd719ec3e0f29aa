// The methods that make arrays. Device (which uses its current stream) and Stream share them. The order of arguments is NumPy's: shape,
// then dtype, which is f32 by default.
import { badArgument, refuseSurplus, show, surplusArgument } from '../base/arguments.js';
import { plainView } from '../base/buffers.js';
import { checkOptionNames } from '../base/option-names.js';
import { checkTransfer } from '../copies/upload.js';
import {
  DTYPES,
  type DType,
  type DTypeLike,
  dtypeOfHost,
  type HostArray,
  type HostOf,
  type ScalarInput,
  isHostOf,
} from '../elements/dtype.js';
import { checkDType } from '../elements/dtype-names.js';
import { hostElement } from '../elements/scalar-bits.js';
import { checkReshape, checkShape, lengthOf, type Shape } from '../elements/shape.js';
import { storeNumbers } from '../elements/store-numbers.js';
import type { DeviceArray } from './array.js';
import { noted } from './made-arrays.js';
import { PinnedArray } from './pinned.js';
import type { CopyOptions } from './copy.js';

/** @internal What a factory needs of a stream. */
export interface ArrayTarget {
  allocate<D extends DType>(shape: readonly number[], dtype: D): DeviceArray<D>;
  fill(array: DeviceArray, value: never): unknown;
  copy(array: DeviceArray, data: never, opts: CopyOptions): unknown;
}

/** The dtype of an array's class. `bool`, `f16` and `bf16` have no class of their own (`HostOf`), so they are only chosen by name. */
export type DTypeOf<T> =
  T extends PinnedArray<infer D>
    ? D
    : T extends DeviceArray<infer D>
      ? D
      : T extends Float32Array
        ? 'f32'
        : T extends Float64Array
          ? 'f64'
          : T extends Int8Array
            ? 'i8'
            : T extends Uint8Array | Uint8ClampedArray
              ? 'u8'
              : T extends Int16Array
                ? 'i16'
                : T extends Uint16Array
                  ? 'u16'
                  : T extends Int32Array
                    ? 'i32'
                    : T extends Uint32Array
                      ? 'u32'
                      : T extends BigInt64Array
                        ? 'i64'
                        : T extends BigUint64Array
                          ? 'u64'
                          : never;

/** Functions of the module take the place; methods have it. */
function refusePlace(call: string, surplus: unknown): void {
  if (surplus !== undefined)
    throw surplusArgument(call, surplus, `call the method of the stream or device that it is for, or the module's function ${call}.`);
}

/**
 * Allocates arrays in stream order (`cuMemAllocAsync`) and never waits. Every method throws ArgumentError for a bad shape, dtype or value
 * and for more bytes than the device has, LimitError at `maxPending`, and StateError on a closed device or stream. If memory runs out,
 * operations that use the array reject with an UpstreamError whose `cause` is the OutOfMemoryError.
 */
export abstract class ArrayFactory {
  /** @internal The stream that allocates and fills the arrays. */
  protected abstract readonly target: ArrayTarget;

  /** @internal Every array that is made passes here. */
  protected own<A extends DeviceArray>(array: A): A {
    return noted(array);
  }

  /** Allocates an array, f32 unless `dtype` is given; contents undefined: `cupy.empty`, `wp.empty`. */
  empty(shape: Shape): DeviceArray<'f32'>;
  empty<D extends DType>(shape: Shape, dtype: DTypeLike<D>): DeviceArray<D>;
  empty<D extends DType>(shape: Shape, dtype?: DTypeLike<D>, surplus?: unknown): DeviceArray<D> {
    refusePlace('empty', surplus);
    return this.own(this.target.allocate(checkShape(shape), checkDType(dtype)));
  }

  /** Allocates an array of zeros (or false), f32 unless `dtype` is given: `cupy.zeros`, `wp.zeros`. */
  zeros(shape: Shape): DeviceArray<'f32'>;
  zeros<D extends DType>(shape: Shape, dtype: DTypeLike<D>): DeviceArray<D>;
  zeros<D extends DType>(shape: Shape, dtype?: DTypeLike<D>, surplus?: unknown): DeviceArray<D> {
    refusePlace('zeros', surplus);
    return this.#filled(shape, 0, checkDType(dtype));
  }

  /** Allocates an array of ones (or true), f32 unless `dtype` is given: `cupy.ones`, `wp.ones`. */
  ones(shape: Shape): DeviceArray<'f32'>;
  ones<D extends DType>(shape: Shape, dtype: DTypeLike<D>): DeviceArray<D>;
  ones<D extends DType>(shape: Shape, dtype?: DTypeLike<D>, surplus?: unknown): DeviceArray<D> {
    refusePlace('ones', surplus);
    return this.#filled(shape, 1, checkDType(dtype));
  }

  /** Allocates an array with `value` in every element: `cupy.full`, `wp.full`. f32 unless `dtype` is given, whatever the value's type. */
  full(shape: Shape, value: number): DeviceArray<'f32'>;
  full<D extends DType>(shape: Shape, value: ScalarInput<NoInfer<D>>, dtype: DTypeLike<D>): DeviceArray<D>;
  full<D extends DType>(shape: Shape, value: ScalarInput<D>, dtype?: DTypeLike<D>, surplus?: unknown): DeviceArray<D> {
    refusePlace('full', surplus);
    const type = checkDType(dtype);
    // Throws for a bad value before anything is allocated.
    hostElement(type, value, 'value');
    return this.#make(checkShape(shape), type, (array) => this.target.fill(array, value as never));
  }

  /**
   * Allocates an array and copies `data` to it: `cupy.array`, `wp.array(data)`. A plain typed array may be changed as soon as `from`
   * returns, a pinned array only when the copy has finished. The result has the given `shape`, which must have as many elements as `data`;
   * the default is the shape of a pinned array and one dimension for other data. `transfer` detaches the ArrayBuffer instead of copying it,
   * as in `copy`. The dtype follows the class of a typed array; a list of numbers is f32 unless `dtype` is given.
   * @example using x = device.from(new Float32Array([1, 2, 3]));
   * @example using y = device.from([1, 2, 3], { dtype: 'i32' });
   */
  from<T extends HostArray | Uint8ClampedArray | PinnedArray>(
    data: T,
    opts?: { readonly shape?: Shape; readonly transfer?: boolean },
  ): DeviceArray<DTypeOf<T>>;
  from(data: readonly number[], opts?: { readonly shape?: Shape }): DeviceArray<'f32'>;
  from<D extends DType>(
    data: HostOf[NoInfer<D>] | Iterable<ScalarInput<NoInfer<D>>>,
    opts: { readonly dtype: DTypeLike<D>; readonly shape?: Shape; readonly transfer?: boolean },
  ): DeviceArray<D>;
  from(data: unknown, opts: { readonly dtype?: DTypeLike<DType>; readonly shape?: Shape; readonly transfer?: boolean } = {}): DeviceArray {
    if (arguments.length > 2) refuseSurplus('from', arguments, 2);
    checkOptionNames(opts, ['dtype', 'shape', 'transfer']);
    const dtype = checkDType(opts.dtype, data instanceof PinnedArray ? data.dtype : dtypeOfHost(data));
    const source = sourceOf(data, dtype);
    const shape = opts.shape === undefined ? source.shape : checkReshape(opts.shape, lengthOf(source.shape));
    const { transfer = false } = opts;
    if (transfer) checkTransfer(data, source.data === data && !(data instanceof PinnedArray));
    return this.#make(shape, dtype, (array) => this.target.copy(array, source.data as never, { transfer: transfer || source.isOwn }));
  }

  #filled<D extends DType>(shape: Shape, value: 0 | 1, dtype: D): DeviceArray<D> {
    const element = dtype === 'bool' ? value === 1 : value;
    return this.#make(checkShape(shape), dtype, (array) => this.target.fill(array, element as never));
  }

  #make<D extends DType>(shape: readonly number[], dtype: D, write: (array: DeviceArray<D>) => unknown): DeviceArray<D> {
    const array = this.target.allocate(shape, dtype);
    try {
      write(array);
    } catch (error) {
      array[Symbol.dispose]();
      throw error;
    }
    return this.own(array);
  }
}

/** Handing so many bytes over takes less time than a snapshot. */
const LEAST_TRANSFERRED = 2 ** 20;

interface Source {
  readonly data: HostArray | PinnedArray;
  readonly shape: readonly number[];
  /** No other code has the data, and handing it over saves a snapshot. */
  readonly isOwn: boolean;
}

/** What `from` copies: the data itself if it is an array of the dtype, else a new array of its values. */
function sourceOf(data: unknown, dtype: DType): Source {
  if (data instanceof PinnedArray) return { data, shape: data.shape, isOwn: false };
  if (isHostOf(data, dtype)) return { data, shape: [plainView(data).length], isOwn: false };
  if (dtypeOfHost(data) !== undefined || typeof data !== 'object' || data === null || !(Symbol.iterator in data)) {
    throw badArgument('data', data, `The data (${show(data)}) is neither an array of dtype ${dtype} nor an iterable of its values.`, dtype);
  }
  const isPlainList = Array.isArray(data) && data[Symbol.iterator] === Array.prototype[Symbol.iterator];
  const values: readonly unknown[] = isPlainList ? data : [...(data as Iterable<unknown>)];
  const host = new DTYPES[dtype].make(new ArrayBuffer(values.length * DTYPES[dtype].byteSize));
  const source = { data: host, shape: [values.length], isOwn: host.byteLength >= LEAST_TRANSFERRED };
  // The checks with a message for each element take ten times as long.
  if (storeNumbers(host, dtype, values)) return source;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (Array.isArray(value)) throw listOfLists(data);
    host[at] = hostElement(dtype, value, `element ${at}`) as never;
  }
  return source;
}

function listOfLists(data: unknown): Error {
  return badArgument(
    'data',
    data,
    `The data (${show(data)}) is a list of lists: from(list.flat(), { shape }) makes an array with a shape.`,
  );
}
