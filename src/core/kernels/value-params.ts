// Parameters that CUDA C++ kernels take by value, apart from scalars: structs, vectors, bytes. The layouts are those of nvcc and g++ on
// x86-64: every field at the next multiple of its alignment, the size a multiple of the largest one.
import { passTheType } from '../elements/dtype-names.js';
import { MAX_PARAMETER_BYTES } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, refuseSurplus, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import type { DType, Scalar } from '../elements/dtype.js';
import { type ArrayParam, type OptionalArray, plainParam, surface, type SurfaceParam, texture, type TextureParam } from './params.js';

/** The number of components of a vector. */
export type VectorSize = 1 | 2 | 3 | 4;
/** A vector of CUDA by value, made by `vec` or named `vec3f` and so on: `float3`. */
export interface VectorParam<D extends DType = DType, N extends VectorSize = VectorSize> {
  /** Tells a vector from other parameters. */
  readonly kind: 'vector';
  /** The type of its components. */
  readonly dtype: D;
  /** How many components it has. */
  readonly size: N;
  /** `sizeof`, in bytes. */
  readonly byteSize: number;
  /** `alignof`, in bytes. */
  readonly align: number;
}
/** The type of `dim3`: three u32 by value, x, y and z. */
export interface Dim3Param {
  /** Tells a dim3 from other parameters. */
  readonly kind: 'dim3';
  /** `sizeof`, in bytes. */
  readonly byteSize: 12;
  /** `alignof`, in bytes. */
  readonly align: 4;
}
/** Bytes by value, made by `bytes`. */
export interface BytesParam {
  /** Tells bytes from other parameters. */
  readonly kind: 'bytes';
  /** `sizeof`, in bytes. */
  readonly byteSize: number;
  /** `alignof`, in bytes. */
  readonly align: number;
}
/** An array of a fixed length in a struct, made by `arrayOf`. */
export interface FixedArray<T extends Field = Field, N extends number = number> {
  /** Tells an array from other fields. */
  readonly kind: 'fixed';
  /** The type of its elements. */
  readonly element: T;
  /** How many elements it has. */
  readonly length: N;
  /** `sizeof`, in bytes. */
  readonly byteSize: number;
  /** `alignof`, in bytes. */
  readonly align: number;
}
/** A struct by value, made by `struct`. */
export interface StructParam<F extends Fields = Fields> {
  /** Tells a struct from other parameters. */
  readonly kind: 'struct';
  /** Its fields by name, in their order. */
  readonly fields: F;
  /** `offsetof` of each field, in bytes. */
  readonly offsets: { readonly [K in keyof F]: number };
  /** `sizeof`, in bytes. */
  readonly byteSize: number;
  /** `alignof`, in bytes. */
  readonly align: number;
}
/** A parameter that CUDA C++ kernels take by value, except scalars. */
export type ValueParam = StructParam | VectorParam | Dim3Param | BytesParam;
/** What a struct may have as a field. Arrays are pointers. */
export type Field = Scalar | ValueParam | FixedArray | ArrayParam | OptionalArray | TextureParam | SurfaceParam;
/** The fields of a struct by name, in their order. */
export interface Fields {
  readonly [name: string]: Field;
}

/** Options of `struct` and `bytes`. */
export interface ValueOptions {
  /** The alignment in bytes, a power of two up to 128: `alignas`, `__align__`. */
  readonly align?: number;
}

const NAME = /^[A-Za-z_$][\w$]*$/;
const MAX_ALIGN = 128;
/** Deepest nesting of structs and arrays, so that reading them needs no deep stack. */
const MAX_DEPTH = 32;
const POINTER_BYTES = 8;
const WIDEST_VECTOR_ALIGN = 16;
const OPTIONS: readonly string[] = ['align'];
const EXAMPLE = 'a type such as f32, vec3f, struct({ n: i32 }), arrayOf(f32, 4), bytes(16) or input(f32)';

/** Size and alignment of a field in bytes. */
export function spaceOf(field: Field): { readonly byteSize: number; readonly align: number } {
  if (field.kind === 'array' || field.kind === 'optional') return { byteSize: POINTER_BYTES, align: POINTER_BYTES };
  return field.kind === 'scalar' ? { byteSize: field.byteSize, align: field.byteSize } : field;
}

/**
 * Declares a struct that a CUDA C++ kernel takes by value. The order of the keys is the order of the fields. Fields are scalars, vectors,
 * structs, `arrayOf`, `bytes`, `texture`, `surface`, and pointers: `input(f32)` is `const float*`, and its array is ordered like an array
 * argument. The layout is that of nvcc; `align` is that of `alignas`. Throws ArgumentError for a field of another kind and for more than
 * 32,764 bytes. A NumPy structured dtype with `align=True` in CuPy, `wp.struct` in Warp, `ctypes.Structure` in cuda.core.
 * @example const Params = struct({ x: input(f32), y: inout(f32), n: i32, origin: vec3f });
 */
export function struct<const F extends Fields>(fields: F, opts: ValueOptions = {}): StructParam<F> {
  if (arguments.length > 2) refuseSurplus('struct', arguments, 2);
  return structOf(fields, opts, 0) as StructParam<F>;
}

function structOf(fields: unknown, opts: unknown, depth: number): StructParam {
  if (typeof fields !== 'object' || fields === null)
    throw badArgument('fields', fields, `The fields of a struct (${show(fields)}) are not an object of types.`);
  const own: [string, Field][] = Object.entries(fields).map(([name, given]) => {
    // JavaScript orders integer-like keys first, which would reorder the fields.
    if (!NAME.test(name)) throw badArgument(name, given, `The name of a field (${show(name)}) is not an identifier.`);
    return [name, fieldOf(given, `The field ${name}`, name, depth + 1)];
  });
  if (own.length === 0) throw badArgument('fields', fields, 'The fields of a struct ({}) are empty: a struct has at least one field.');
  let end = 0;
  let natural = 1;
  const offsets = own.map(([name, field]): [string, number] => {
    const { byteSize, align } = spaceOf(field);
    const at = roundUp(end, align);
    end = at + byteSize;
    natural = Math.max(natural, align);
    return [name, at];
  });
  const align = alignOf(opts, natural, natural);
  const byteSize = checkSize(roundUp(end, align), 'The struct');
  return Object.freeze({
    kind: 'struct',
    fields: Object.freeze(Object.fromEntries(own)),
    offsets: Object.freeze(Object.fromEntries(offsets)),
    byteSize,
    align,
  } as const);
}

/**
 * Declares an array of `length` elements in a struct: `float m[4]`, a subarray dtype in NumPy. Arrays of arrays are `float m[3][4]`:
 * `arrayOf(arrayOf(f32, 4), 3)`. Throws ArgumentError unless `length` is a whole number from 1 to 32,764, and for more than
 * 32,764 bytes.
 */
export function arrayOf<const T extends Field, const N extends number>(element: T, length: N): FixedArray<T, N> {
  if (arguments.length > 2) refuseSurplus('arrayOf', arguments, 2);
  return fixedOf(element, length, 0) as FixedArray<T, N>;
}

function fixedOf(given: unknown, length: unknown, depth: number): FixedArray {
  const element = fieldOf(given, 'The element of arrayOf', 'element', depth + 1);
  const count = checkInteger('length', length, 1, MAX_PARAMETER_BYTES);
  const { byteSize, align } = spaceOf(element);
  return Object.freeze({ kind: 'fixed', element, length: count, byteSize: checkSize(count * byteSize, 'The array'), align } as const);
}

/**
 * Declares a parameter of `n` bytes whose contents the library does not know, given as a Uint8Array of this length: for unions, packed
 * structs and bit fields. `align` (default 1) places it in a struct. Throws ArgumentError unless `n` is a multiple of `align`, from 1 to
 * 32,764.
 */
export function bytes(n: number, opts: ValueOptions = {}): BytesParam {
  if (arguments.length > 2) refuseSurplus('bytes', arguments, 2);
  const byteSize = checkInteger('n', n, 1, MAX_PARAMETER_BYTES);
  const align = alignOf(opts, 1, 1);
  if (byteSize % align !== 0) throw badArgument('n', n, `The size (${n}) is not a multiple of the alignment (${align}).`, align);
  return Object.freeze({ kind: 'bytes', byteSize, align } as const);
}

/**
 * Declares a vector of CUDA by value: `vec(u8, 4)` is `uchar4`, `vec(f32, 3)` is `float3`, also named `vec3f`. A value is a list of the
 * components, `[x, y, z]`, or an object `{ x, y, z }`. `align` is for CUDA 13's types with another alignment: `double4_32a` is
 * `vec(f64, 4, { align: 32 })`. Throws ArgumentError for types that CUDA has no vectors of: `bool`, and `f16` and `bf16` except
 * `__half2` and `__nv_bfloat162`.
 */
export function vec<const D extends DType, const N extends VectorSize>(
  type: Scalar<D>,
  size: N,
  opts: ValueOptions = {},
): VectorParam<D, N> {
  if (arguments.length > 3) refuseSurplus('vec', arguments, 3);
  const scalar = fieldOf(type, 'The type of a vector', 'type', 0);
  if (scalar.kind !== 'scalar') throw badArgument('type', type, `The type of a vector (${show(type)}) is not a type such as f32.`);
  const count = checkInteger('size', size, 1, 4) as VectorSize;
  const { dtype, byteSize } = scalar;
  if (dtype === 'bool' || ((dtype === 'f16' || dtype === 'bf16') && count !== 2))
    throw badArgument('type', dtype, `CUDA has no vectors of ${count} ${dtype}: use arrayOf in a struct.`);
  const natural = count % 2 === 0 ? Math.min(count * byteSize, WIDEST_VECTOR_ALIGN) : byteSize;
  const align = alignOf(opts, natural, natural);
  return Object.freeze({ kind: 'vector', dtype: dtype as D, size: count as N, byteSize: roundUp(count * byteSize, align), align } as const);
}

/** CUDA's `dim3` by value. A value is a number or a list, x first, or an object; axes that are not given are 1. */
export const dim3: Dim3Param = Object.freeze({ kind: 'dim3', byteSize: 12, align: 4 } as const);

/** A copy of the field whose layout this module has computed. Throws ArgumentError if it is no field. */
export function fieldOf(given: unknown, what: string, argument: string, depth = 0): Field {
  if (depth > MAX_DEPTH) throw badArgument(argument, depth, `${what} is nested more deeply than structs may be (${MAX_DEPTH}).`, MAX_DEPTH);
  const from = (given ?? {}) as Readonly<Record<string, unknown>>;
  switch (from['kind']) {
    case 'scalar':
    case 'array':
    case 'optional': {
      const plain = plainParam(given);
      if (plain !== undefined) return plain;
      break;
    }
    case 'struct':
      return structOf(from['fields'], { align: from['align'] }, depth);
    case 'fixed':
      return fixedOf(from['element'], from['length'], depth);
    case 'bytes':
      return bytes(from['byteSize'] as number, { align: from['align'] as number });
    case 'vector':
      return vec({ kind: 'scalar', dtype: from['dtype'] } as Scalar, from['size'] as VectorSize, { align: from['align'] as number });
    case 'dim3':
      return dim3;
    case 'texture':
      return texture;
    case 'surface':
      return surface;
  }
  throw badArgument(argument, given, `${what} (${show(given)}) is not ${EXAMPLE}${passTheType(given)}.`);
}

/** The bytes of all parameters of a CUDA C++ kernel, each at the next multiple of its alignment. */
export function bytesOfAll(params: Readonly<Record<string, Field>>): number {
  let end = 0;
  for (const param of Object.values(params)) {
    const { byteSize, align } = spaceOf(param);
    end = roundUp(end, align) + byteSize;
  }
  return end;
}

function roundUp(size: number, align: number): number {
  return Math.ceil(size / align) * align;
}

function checkSize(byteSize: number, what: string): number {
  if (byteSize <= MAX_PARAMETER_BYTES) return byteSize;
  const message = `${what} (${byteSize} bytes) exceeds the limit of the parameters of a kernel (${MAX_PARAMETER_BYTES} bytes).`;
  throw badArgument('fields', byteSize, message, MAX_PARAMETER_BYTES);
}

function alignOf(opts: unknown, least: number, fallback: number): number {
  checkOptionNames(opts, OPTIONS);
  const { align = fallback } = opts as ValueOptions;
  checkInteger('align', align, least, MAX_ALIGN);
  if ((align & (align - 1)) !== 0) throw badArgument('align', align, `The align (${align}) is not a power of two.`);
  return align;
}

/** What messages write behind the name of a value for what begins at this byte of it: `.x`, `.lines[2]`. */
export function pathAt(field: Field, byte: number): string {
  if (field.kind === 'fixed') {
    const { byteSize } = spaceOf(field.element);
    const index = Math.floor(byte / byteSize);
    return `[${index}]${pathAt(field.element, byte - index * byteSize)}`;
  }
  if (field.kind !== 'struct') return '';
  const [name, offset] = Object.entries(field.offsets).findLast(([, at]) => at <= byte) as [string, number];
  return `.${name}${pathAt(field.fields[name] as Field, byte - offset)}`;
}
