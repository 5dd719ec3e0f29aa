// Functions that make, copy and fill arrays without naming a stream: they work where their options say, else on the current stream of the
// arrays' device or of the default device.
// Thread: owner.
import { refuseSurplus } from '../base/arguments.js';
import type { DType, DTypeLike, HostArray, HostOf, ScalarInput } from '../elements/dtype.js';
import type { Shape } from '../elements/shape.js';
import type { Operation } from '../operations/operation.js';
import type { DTypeOf } from './array-factory.js';
import { DeviceArray } from './array.js';
import { isPrintStyle } from './array-print.js';
import type { CopyOptions } from './copy.js';
import type { Device } from './device.js';
import { getDefaultDevice, type Place, streamAt } from './global-functions.js';
import { openDevices } from './open-devices.js';
import { PinnedArray } from './pinned.js';
import { Texture } from './texture.js';

/** An array with undefined contents, f32 unless `dtype` is given: `cupy.empty`, `wp.empty`. Throws as `device.empty`. */
export function empty(shape: Shape, dtype?: undefined, place?: Place): DeviceArray<'f32'>;
export function empty<D extends DType>(shape: Shape, dtype: DTypeLike<D>, place?: Place): DeviceArray<D>;
export function empty(shape: Shape, dtype?: DTypeLike<DType>, place?: Place): DeviceArray {
  if (arguments.length > 3) refuseSurplus('empty', arguments, 3);
  return streamAt(place).empty(shape, dtype as DType);
}

/**
 * An array of zeros (or false), f32 unless `dtype` is given: `cupy.zeros`, `wp.zeros`. Throws as `device.zeros`.
 * @example const x = zeros([1024, 768], f32, { device: 'cuda:1' });
 */
export function zeros(shape: Shape, dtype?: undefined, place?: Place): DeviceArray<'f32'>;
export function zeros<D extends DType>(shape: Shape, dtype: DTypeLike<D>, place?: Place): DeviceArray<D>;
export function zeros(shape: Shape, dtype?: DTypeLike<DType>, place?: Place): DeviceArray {
  if (arguments.length > 3) refuseSurplus('zeros', arguments, 3);
  return streamAt(place).zeros(shape, dtype as DType);
}

/** An array of ones (or true), f32 unless `dtype` is given: `cupy.ones`, `wp.ones`. Throws as `device.ones`. */
export function ones(shape: Shape, dtype?: undefined, place?: Place): DeviceArray<'f32'>;
export function ones<D extends DType>(shape: Shape, dtype: DTypeLike<D>, place?: Place): DeviceArray<D>;
export function ones(shape: Shape, dtype?: DTypeLike<DType>, place?: Place): DeviceArray {
  if (arguments.length > 3) refuseSurplus('ones', arguments, 3);
  return streamAt(place).ones(shape, dtype as DType);
}

/** An array with `value` in every element, f32 unless `dtype` is given: `cupy.full`, `wp.full`. Throws as `device.full`. */
export function full(shape: Shape, value: number, dtype?: undefined, place?: Place): DeviceArray<'f32'>;
export function full<D extends DType>(shape: Shape, value: ScalarInput<NoInfer<D>>, dtype: DTypeLike<D>, place?: Place): DeviceArray<D>;
export function full(shape: Shape, value: ScalarInput<DType>, dtype?: DTypeLike<DType>, place?: Place): DeviceArray {
  if (arguments.length > 4) refuseSurplus('full', arguments, 4);
  return streamAt(place).full(shape, value as never, dtype as never);
}

/**
 * An array with the contents of `data`: `cupy.array`, `wp.array(data)`, `torch.tensor`. It is `device.from`, whose options it takes, and
 * throws as that does.
 * @example const x = array([1, 2, 3], { device: 'cuda:1' });
 */
export function array<T extends HostArray | Uint8ClampedArray | PinnedArray>(
  data: T,
  opts?: Place & { readonly shape?: Shape; readonly transfer?: boolean },
): DeviceArray<DTypeOf<T>>;
export function array(data: readonly number[], opts?: Place & { readonly shape?: Shape }): DeviceArray<'f32'>;
export function array<D extends DType>(
  data: HostOf[NoInfer<D>] | Iterable<ScalarInput<NoInfer<D>>>,
  opts: Place & { readonly dtype: DTypeLike<D>; readonly shape?: Shape; readonly transfer?: boolean },
): DeviceArray<D>;
export function array(data: unknown, opts: unknown = {}): DeviceArray {
  if (arguments.length > 2) refuseSurplus('array', arguments, 2);
  const [place, own] = parted(opts);
  return streamAt(place).from(data as never, own as never);
}

/** Page-locked host memory, f32 unless `dtype` is given: `cupyx.empty_pinned`, `wp.empty(pinned=True)`. Throws as `device.pinned`. */
export function pinned(shape: Shape, dtype?: undefined, place?: Place): PinnedArray<'f32'>;
export function pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>, place?: Place): PinnedArray<D>;
export function pinned(shape: Shape, dtype?: DTypeLike<DType>, place?: Place): PinnedArray {
  if (arguments.length > 3) refuseSurplus('pinned', arguments, 3);
  return streamAt(place).device.pinned(shape, dtype as DType);
}

type Reachable<D extends DType> = DeviceArray<D> | PinnedArray<D>;

/**
 * Copies elements between arrays, as `stream.copy`, whose options it takes: `wp.copy`, `cupy.copyto`, `torch.Tensor.copy_`. It works on the
 * current stream of dst's device, else of src's, unless the options name a device or stream. Throws as `stream.copy`.
 * @example copy(y, x);
 */
export function copy<D extends DType>(
  dst: Reachable<D>,
  src: Reachable<NoInfer<D>> | HostOf[NoInfer<D>],
  opts?: CopyOptions & Place,
): Operation;
/** Copies to a plain typed array, which has the elements when `done` has resolved. */
export function copy<D extends DType>(dst: HostOf[NoInfer<D>], src: Reachable<D>, opts?: CopyOptions & Place): Operation;
export function copy(dst: unknown, src: unknown, opts: unknown = {}): Operation {
  if (arguments.length > 3) refuseSurplus('copy', arguments, 3);
  const [place, own] = parted(opts);
  return streamAt(place, () => deviceOf(dst) ?? deviceOf(src) ?? getDefaultDevice()).copy(dst as DeviceArray, src as DeviceArray, own);
}

/**
 * Sets every element of an array or view, as `stream.fill`: `ndarray.fill`, `wp.array.fill_`, `torch.Tensor.fill_`. It works on the current
 * stream of the array's device, unless the options name another one. Throws as `stream.fill`.
 */
export function fill<D extends DType>(dst: DeviceArray<D>, value: ScalarInput<NoInfer<D>>, place?: Place): Operation {
  if (arguments.length > 3) refuseSurplus('fill', arguments, 3);
  return streamAt(place, () => deviceOf(dst) ?? getDefaultDevice()).fill(dst, value);
}

/**
 * Prints arrays as NumPy prints them, and other values as `console.log` does, with blanks between them: `print(a)` of Python. Behind an
 * array, options of `array.toString` may be the last argument. Waits for the last writers of the arrays. Rejects as `array.toString` does.
 * @example await print('y =', y);
 * @example await print(y, { precision: 3 });
 */
export async function print(...values: readonly unknown[]): Promise<void> {
  const { inspect } = process.getBuiltinModule('node:util');
  const last = values.at(-1);
  const opts = isPrintStyle(last) && isPrinted(values.at(-2)) ? last : undefined;
  const textOf = async (value: unknown): Promise<string> => {
    if (isPrinted(value)) return value.toString(opts);
    return typeof value === 'string' ? value : inspect(value);
  };
  const texts = await Promise.all((opts === undefined ? values : values.slice(0, -1)).map(textOf));
  // One argument: no part of it is a format.
  console.log(texts.join(' '));
}

function isPrinted(value: unknown): value is DeviceArray | PinnedArray {
  return value instanceof DeviceArray || value instanceof PinnedArray;
}

function deviceOf(value: unknown): Device | undefined {
  if (value instanceof DeviceArray) return value.device;
  return value instanceof Texture ? openDevices().find(({ core }) => core === value.core) : undefined;
}

/** The options of the place, and the others. */
function parted(opts: unknown): [place: Place, others: object] {
  // The array's or stream's own function refuses what is no object, and names its options.
  if (typeof opts !== 'object' || opts === null || Array.isArray(opts)) return [{}, opts as never];
  const { device, stream, ...others } = opts as Place;
  return [{ device, stream } as Place, others];
}
