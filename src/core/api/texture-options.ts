// The options of `createTexture`: checks them, and says how the device stores and reads the elements.
import type { Sampling, TextureShapeOf } from '../../protocol/texture-encoder.js';
import { TextureAddress, TextureFilter, TextureFlag, TextureFormat } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import type { DeviceCore } from '../device/device-core.js';
import { DTYPES, type DType, type DTypeLike, dtypeOfHost, type HostOf } from '../elements/dtype.js';
import { checkDType } from '../elements/dtype-names.js';
import { checkShape, lengthOf, type Shape } from '../elements/shape.js';
import type { VectorParam } from '../kernels/value-params.js';
import { textureLimits } from '../memory/texture-limits.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

/** Element types that textures have: CUDA's formats. */
export type TextureDType = 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f16' | 'f32';
/** Which elements a read takes: the one at the coordinates, or those around them, weighted. */
export type TextureFilterMode = 'point' | 'linear';
/** What a read outside of the texture takes: the nearest element, the repeated or mirrored texture, or zeros. */
export type TextureAddressMode = 'clamp' | 'wrap' | 'mirror' | 'border';
/** What a read returns: the element, or an integer of 8 or 16 bits as a float from 0 to 1 (-1 to 1 if it is signed). */
export type TextureReadMode = 'element' | 'normalizedFloat';
/** How kernels read a texture: `cudaTextureDesc`. */
export interface TextureSampling {
  /** Default 'point'. 'linear' needs float elements or `read: 'normalizedFloat'`. */
  readonly filter?: TextureFilterMode;
  /** One mode, or one for each axis in shape order, the last one for x. Default 'clamp'. 'wrap' and 'mirror' need `normalizedCoordinates`. */
  readonly address?: TextureAddressMode | readonly TextureAddressMode[];
  /** Whether coordinates from 0 to 1 cover the texture. Default false: they count elements. */
  readonly normalizedCoordinates?: boolean;
  /** Default 'element'. */
  readonly read?: TextureReadMode;
}
/** Options of `createTexture` with memory of its own. */
export interface TextureOptions<D extends TextureDType = TextureDType, T = HostOf[D] | StridedArray<D> | PinnedArray<D>>
  extends TextureSampling {
  /** One to three dimensions, the width last: [height, width]. The channels are not a dimension. */
  readonly shape: Shape;
  /** The type of a channel, default that of `data`, else f32. A vector such as `vec4f` or `vec(u8, 4)` gives the channels too. */
  readonly dtype?: DTypeLike<D> | VectorParam<D, 1 | 2 | 4>;
  /** Values per element: 1, 2 or 4, default 1. */
  readonly channels?: 1 | 2 | 4;
  /** Whether kernels may write it: `texture.surface`. Default false. */
  readonly surface?: boolean;
  /** The initial values, channels innermost, which are copied as by `stream.copy`. Without `data`, the contents are undefined. */
  readonly data?: T;
}
/** Options of `createTexture` over an array, without a copy. */
export interface LinearTextureOptions<D extends TextureDType = TextureDType> extends TextureSampling {
  /** A contiguous array of one or two dimensions, and the channels as one more if there are 2 or 4. */
  readonly array: StridedArray<D>;
  /** Values per element: 1, 2 or 4, default 1. */
  readonly channels?: 1 | 2 | 4;
}

/** Checked options. */
export interface TexturePlan {
  readonly shape: readonly number[];
  readonly dtype: TextureDType;
  readonly channels: 1 | 2 | 4;
  readonly byteLength: number;
  readonly filter: TextureFilterMode;
  readonly address: readonly TextureAddressMode[];
  readonly normalizedCoordinates: boolean;
  readonly readMode: TextureReadMode;
  readonly layout: TextureShapeOf;
  readonly sampling: Sampling;
  /** The array whose memory it reads. */
  readonly array: StridedArray | undefined;
  /** Bytes from the start of one row of the array to the next; 0 without an array. */
  readonly pitch: number;
  readonly data: unknown;
}

const OPTIONS: readonly string[] = ['shape', 'dtype', 'channels', 'surface', 'data', 'filter', 'address', 'normalizedCoordinates', 'read'];
const LINEAR_OPTIONS: readonly string[] = ['array', 'channels', 'filter', 'address', 'normalizedCoordinates', 'read'];
const FORMATS: Readonly<Record<TextureDType, TextureFormat>> = {
  u8: TextureFormat.U8,
  u16: TextureFormat.U16,
  u32: TextureFormat.U32,
  i8: TextureFormat.I8,
  i16: TextureFormat.I16,
  i32: TextureFormat.I32,
  f16: TextureFormat.F16,
  f32: TextureFormat.F32,
};
const FILTERS: Readonly<Record<TextureFilterMode, TextureFilter>> = { point: TextureFilter.POINT, linear: TextureFilter.LINEAR };
const ADDRESSES: Readonly<Record<TextureAddressMode, TextureAddress>> = {
  wrap: TextureAddress.WRAP,
  clamp: TextureAddress.CLAMP,
  mirror: TextureAddress.MIRROR,
  border: TextureAddress.BORDER,
};
/** CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT and _PITCH_ALIGNMENT of every GPU that the driver supports. */
const ALIGNMENT = 512;
const PITCH_ALIGNMENT = 32;

/** Throws ArgumentError for bad options, UnsupportedError for a device without textures. */
export function planTexture(core: DeviceCore, opts: unknown): TexturePlan {
  const isLinear = typeof opts === 'object' && opts !== null && (opts as { readonly array?: unknown }).array !== undefined;
  checkOptionNames(opts, isLinear ? LINEAR_OPTIONS : OPTIONS);
  const limits = textureLimits(core.info);
  if (limits === undefined)
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', `Device ${core.name} does not have textures.`, 'textures', {
      device: core.name,
    });
  const given = opts as TextureOptions & Partial<LinearTextureOptions>;
  const element = isLinear ? elementOf({ dtype: checkArray(core, given.array), channels: given.channels }) : elementOf(given);
  const { dtype, channels } = element;
  const shape = isLinear ? linearShape(given.array as StridedArray, channels) : checkShape(given.shape);
  if (shape.length < 1 || shape.length > 3 || (isLinear && shape.length > 2)) {
    const most = isLinear ? 2 : 3;
    throw badArgument(
      'shape',
      shape,
      `A texture${isLinear ? ' over an array' : ''} has 1 to ${most} dimensions; the shape (${show(shape)}) has ${shape.length}.`,
      most,
    );
  }
  const hasSurface = isLinear ? false : checkFlag('surface', given.surface);
  const kind = isLinear ? 'linear' : hasSurface ? 'surface' : 'texture';
  checkExtents(core, shape, limits[kind][shape.length - 1] as readonly number[], kind);
  const elementBytes = DTYPES[dtype].byteSize * channels;
  const byteLength = lengthOf(shape) * elementBytes;
  if (byteLength > core.info.totalMemoryBytes) {
    const message = `The texture's size (${byteLength} bytes) exceeds the memory of device ${core.name} (${core.info.totalMemoryBytes} bytes).`;
    throw badArgument('shape', shape, message, core.info.totalMemoryBytes);
  }
  const width = shape.at(-1) as number;
  const pitch = isLinear ? width * elementBytes : 0;
  if (isLinear) checkAlignment(given.array as StridedArray, shape, pitch, limits.linearPitch);
  const how = samplingOf(given, dtype, shape.length, isLinear);
  return {
    ...how,
    shape,
    dtype,
    channels,
    byteLength,
    layout: { width, height: shape.at(-2) ?? 0, depth: shape.at(-3) ?? 0, format: FORMATS[dtype], channels, hasSurface },
    array: given.array,
    pitch,
    data: given.data,
  };
}

function elementOf({ dtype, channels, data }: { readonly dtype?: unknown; readonly channels?: unknown; readonly data?: unknown }): {
  readonly dtype: TextureDType;
  readonly channels: 1 | 2 | 4;
} {
  const vector = (dtype as { readonly kind?: unknown } | undefined)?.kind === 'vector' ? (dtype as VectorParam) : undefined;
  const own = data instanceof PinnedArray || data instanceof StridedArray ? data.dtype : dtypeOfHost(data);
  const type: DType = vector === undefined ? checkDType(dtype as DTypeLike<DType> | undefined, own) : vector.dtype;
  if (!Object.hasOwn(FORMATS, type)) {
    const known = Object.keys(FORMATS).join(', ');
    throw badArgument('dtype', dtype ?? type, `The dtype of a texture (${type}) is none of ${known}.`);
  }
  const count = channels ?? vector?.size ?? 1;
  if (count !== 1 && count !== 2 && count !== 4)
    throw badArgument('channels', count, `The channels of a texture (${show(count)}) are not 1, 2 or 4.`);
  if (vector !== undefined && count !== vector.size)
    throw badArgument('channels', count, `The channels (${count}) differ from those of the dtype (${vector.size}).`, vector.size);
  return { dtype: type as TextureDType, channels: count };
}

function checkArray(core: DeviceCore, array: unknown): DType {
  if (!(array instanceof StridedArray)) throw badArgument('array', array, `The array (${show(array)}) is not a device array.`);
  if (array.isDisposed) throw array.disposedError();
  if (array.core !== core) throw badArgument('array', array, `The array ${belongsTo(array.core.name, core.name)}.`, core.name);
  if (!array.isContiguous)
    throw badArgument('array', array, `The array (${array.label}) is not contiguous: a texture reads contiguous memory.`);
  return array.dtype;
}

/** The shape without the axis of the channels. */
function linearShape(array: StridedArray, channels: number): readonly number[] {
  if (channels === 1) return array.shape;
  if (array.shape.length > 1 && array.shape.at(-1) === channels) return array.shape.slice(0, -1);
  throw badArgument('array', array, `The last axis of the array (${array.label}) does not have the channels (${channels}).`, channels);
}

function checkExtents({ name }: DeviceCore, shape: readonly number[], limits: readonly number[], kind: string): void {
  const axes = ['depth', 'height', 'width'].slice(-shape.length);
  const what = kind === 'linear' ? 'a texture over an array' : kind === 'surface' ? 'a texture with a surface' : 'a texture';
  for (const [at, extent] of shape.entries()) {
    const limit = limits[at] as number;
    if (extent >= 1 && extent <= limit) continue;
    const dimensions = shape.length === 1 ? '1 dimension' : `${shape.length} dimensions`;
    const broken = extent < 1 ? 1 : limit;
    const message = `The ${axes[at]} of ${what} (${extent}) is ${extent < 1 ? 'below the minimum' : `above the limit of device ${name} for ${dimensions}`} (${broken}).`;
    throw badArgument('shape', shape, message, broken);
  }
}

function checkAlignment(array: StridedArray, shape: readonly number[], pitch: number, most: number): void {
  const offset = array.storage.base + array.byteOffset;
  if (offset % ALIGNMENT !== 0) {
    const message = `The array (${array.label}) begins at byte ${offset} of its memory. For a texture, this must be a multiple of ${ALIGNMENT}.`;
    throw badArgument('array', array, message, ALIGNMENT);
  }
  if (shape.length < 2) return;
  if (pitch % PITCH_ALIGNMENT !== 0) {
    const message = `The rows of the array (${array.label}) have ${pitch} bytes. For a texture of two dimensions, this must be a multiple of ${PITCH_ALIGNMENT} bytes.`;
    throw badArgument('array', array, message, PITCH_ALIGNMENT);
  }
  if (pitch > most)
    throw badArgument('array', array, `The rows of the array (${array.label}, ${pitch} bytes) exceed the limit (${most}).`, most);
}

type How = Pick<TexturePlan, 'filter' | 'address' | 'normalizedCoordinates' | 'readMode' | 'sampling'>;

function samplingOf(given: TextureSampling, dtype: TextureDType, rank: number, isLinear: boolean): How {
  const filter = oneOf('filter', given.filter ?? 'point', FILTERS);
  const readMode = oneOf('read', given.read ?? 'element', { element: 0, normalizedFloat: TextureFlag.NORMALIZED_FLOAT });
  const normalizedCoordinates = checkFlag('normalizedCoordinates', given.normalizedCoordinates);
  const modes: unknown = given.address ?? 'clamp';
  if (Array.isArray(modes) && modes.length !== rank)
    throw badArgument('address', modes, `The address modes (${show(modes)}) are not a list with one mode for each axis (${rank}).`, rank);
  const address = Array.from({ length: rank }, (_, axis) => oneOf('address', Array.isArray(modes) ? modes[axis] : modes, ADDRESSES));
  const isFloat = dtype === 'f32' || dtype === 'f16';
  if (readMode === 'normalizedFloat' && (isFloat || DTYPES[dtype].byteSize > 2))
    throw badArgument('read', readMode, `The read mode normalizedFloat needs integers of 8 or 16 bits; the dtype is ${dtype}.`, dtype);
  if (filter === 'linear' && !isFloat && readMode === 'element') {
    const cure = DTYPES[dtype].byteSize > 2 ? 'f32 or f16' : "f32, f16 or read: 'normalizedFloat'";
    throw badArgument('filter', filter, `The filter linear needs float values; the dtype is ${dtype}: use ${cure}.`, dtype);
  }
  const repeated = address.find((mode) => mode === 'wrap' || mode === 'mirror');
  if (repeated !== undefined && !normalizedCoordinates)
    throw badArgument('address', repeated, `The address mode ${repeated} needs normalizedCoordinates: true.`);
  if (isLinear && rank === 1 && (filter !== 'point' || normalizedCoordinates || address.some((mode) => mode !== 'clamp'))) {
    const message =
      'A texture over an array of one dimension takes no filter, address or normalizedCoordinates: tex1Dfetch, which reads it, does not use them.';
    throw badArgument('array', given, message);
  }
  const [x = 'clamp', y = 'clamp', z = 'clamp'] = address.toReversed();
  const flags =
    (normalizedCoordinates ? TextureFlag.NORMALIZED_COORDINATES : 0) | (readMode === 'normalizedFloat' ? TextureFlag.NORMALIZED_FLOAT : 0);
  const sampling: Sampling = { filter: FILTERS[filter], address: [ADDRESSES[x], ADDRESSES[y], ADDRESSES[z]], flags };
  return { filter, address: Object.freeze(address), normalizedCoordinates, readMode, sampling };
}

function oneOf<T extends string>(option: string, value: unknown, known: Readonly<Record<T, unknown>>): T {
  if (typeof value === 'string' && Object.hasOwn(known, value)) return value as T;
  throw badArgument(option, value, `The ${option} (${show(value)}) is none of ${Object.keys(known).join(', ')}.`);
}

function checkFlag(option: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true;
  throw badArgument(option, value, `The option ${option} (${show(value)}) is not true or false.`);
}
