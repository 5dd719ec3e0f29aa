// The parameters that every kernel may have, scalars and arrays, and pointers that may be null.
import { passTheType } from '../elements/dtype-names.js';
import { badArgument, refuseSurplus, show } from '../base/arguments.js';
import { DTYPES, type DType, isDType, type Scalar } from '../elements/dtype.js';

/** How a kernel uses an array. Tracked ordering depends on it, and so does poisoning: a failed launch poisons the arrays it writes. */
export type Access = 'in' | 'out' | 'inout';
/** The number of dimensions of an array parameter. */
export type Rank = 1 | 2 | 3 | 4;
/** An array parameter of a kernel, made by `input`, `output` or `inout`: a pointer in CUDA C++. */
export interface ArrayParam<D extends DType = DType, A extends Access = Access, N extends Rank = Rank> {
  /** Tells an array parameter from a scalar one. */
  readonly kind: 'array';
  /** The element type. A launch with an array of another throws an ArgumentError. */
  readonly dtype: D;
  /** 'in' for `input`, 'out' for `output`, 'inout' for `inout`. */
  readonly access: A;
  /** Dimensions of the array. */
  readonly rank: N;
}
/** A parameter of a kernel: a scalar type such as `f32`, or an array. */
export type Param = Scalar | ArrayParam;
/** A kernel's parameters by name. The order of the keys is the order of the arguments. */
export type Params = Readonly<Record<string, Param>>;

/** An array of a CUDA C++ kernel that may be null, made by `optional`. */
export interface OptionalArray<A extends ArrayParam = ArrayParam> {
  /** Tells an optional array from one that must be given. */
  readonly kind: 'optional';
  /** The array's own declaration. */
  readonly array: A;
}

/** A texture of a CUDA C++ kernel: `texture` as a parameter's type. */
export interface TextureParam {
  /** Tells a texture from other parameters. */
  readonly kind: 'texture';
  /** `sizeof`, in bytes. */
  readonly byteSize: 8;
  /** `alignof`, in bytes. */
  readonly align: 8;
}
/** A surface of a CUDA C++ kernel: `surface` as a parameter's type. */
export interface SurfaceParam {
  /** Tells a surface from other parameters. */
  readonly kind: 'surface';
  /** `sizeof`, in bytes. */
  readonly byteSize: 8;
  /** `alignof`, in bytes. */
  readonly align: 8;
}

/** A texture, which the kernel reads: `cudaTextureObject_t`, CuPy's TextureObject, Warp's Texture2D. A launch gives a Texture. */
export const texture: TextureParam = Object.freeze({ kind: 'texture', byteSize: 8, align: 8 } as const);
/** A surface, which the kernel reads and writes: `cudaSurfaceObject_t`, CuPy's SurfaceObject. A launch gives the `surface` of a Texture. */
export const surface: SurfaceParam = Object.freeze({ kind: 'surface', byteSize: 8, align: 8 } as const);

// Short names for the annotation that an exported kernel needs under isolatedDeclarations.
/** The type of `input(...)`, for the annotation of an exported kernel. */
export type In<D extends DType, N extends Rank = 1> = ArrayParam<D, 'in', N>;
/** The type of `output(...)`, for the annotation of an exported kernel. */
export type Out<D extends DType, N extends Rank = 1> = ArrayParam<D, 'out', N>;
/** The type of `inout(...)`, for the annotation of an exported kernel. */
export type InOut<D extends DType, N extends Rank = 1> = ArrayParam<D, 'inout', N>;

function arrayParam<A extends Access>(access: A, call: string) {
  return <D extends DType, N extends Rank>(type: Scalar<D>, rank: N): ArrayParam<D, A, N> => {
    const scalar = plainParam(type);
    if (scalar?.kind !== 'scalar') {
      const cure = passTheType(type) || ' such as f32';
      throw badArgument('type', type, `The type given to ${call} (${show(type)}) is not a scalar type${cure}.`);
    }
    if (!RANKS.includes(rank)) throw badArgument('rank', rank, `The rank given to ${call} (${show(rank)}) is not 1, 2, 3 or 4.`, 4);
    return Object.freeze({ kind: 'array', dtype: scalar.dtype as D, access, rank } as const);
  };
}
const RANKS: readonly unknown[] = [1, 2, 3, 4];
const inParam = arrayParam('in', 'input');
const outParam = arrayParam('out', 'output');
const inoutParam = arrayParam('inout', 'inout');

/**
 * Declares an array that the kernel only reads: `const T*`. `rank` is its number of dimensions, 1 to 4, default 1. Throws ArgumentError for
 * another rank, and for a type that is no scalar type such as `f32`, for example its name.
 */
export function input<D extends DType>(type: Scalar<D>): In<D>;
export function input<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): In<D, N>;
export function input<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'in'> {
  if (arguments.length > 2) refuseSurplus('input', arguments, 2);
  return inParam(type, rank);
}

/**
 * Declares an array that the kernel writes and does not read. In CUDA C++ it is `T*`, and a promise that the kernel writes every element: a
 * launch clears an earlier failure of the array. Of a TypeScript kernel the compiler finds out whether it does. `rank` is its number of
 * dimensions, 1 to 4, default 1. Throws as `input` does.
 */
export function output<D extends DType>(type: Scalar<D>): Out<D>;
export function output<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): Out<D, N>;
export function output<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'out'> {
  if (arguments.length > 2) refuseSurplus('output', arguments, 2);
  return outParam(type, rank);
}

/**
 * Declares an array that the kernel reads and writes, or writes only in part: `T*`. `rank` is its number of dimensions, 1 to 4, default 1.
 * Throws as `input` does.
 */
export function inout<D extends DType>(type: Scalar<D>): InOut<D>;
export function inout<D extends DType, N extends Rank>(type: Scalar<D>, rank: N): InOut<D, N>;
export function inout<D extends DType>(type: Scalar<D>, rank: Rank = 1): ArrayParam<D, 'inout'> {
  if (arguments.length > 2) refuseSurplus('inout', arguments, 2);
  return inoutParam(type, rank);
}

/**
 * Declares an array of a CUDA C++ kernel that tests the pointer, as in `if (bias) ...`. A launch passes an array or `null`, which is a null
 * pointer: None in CuPy, a CUdeviceptr of 0 in the driver API. Throws ArgumentError unless `array` was made by `input`, `output` or `inout`.
 * @example cudaKernel('add', { x: inout(f32), bias: optional(input(f32)), n: i32 }, source)
 */
export function optional<A extends ArrayParam>(array: A): OptionalArray<A> {
  if (arguments.length > 1) refuseSurplus('optional', arguments, 1);
  const own = plainParam(array);
  if (own?.kind !== 'array')
    throw badArgument('array', array, `The array given to optional (${show(array)}) is not an array parameter such as input(f32).`);
  return Object.freeze({ kind: 'optional', array: own as A } as const);
}

const ACCESSES: readonly unknown[] = ['in', 'out', 'inout'];

/** A copy, without what else a caller's object may contain; undefined for a value that is no scalar and no array. */
export function plainParam(value: unknown): Scalar | ArrayParam | OptionalArray | undefined {
  // Each property is read once, so a getter cannot return a different value after the check.
  const { kind, dtype, access, rank, array } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (kind === 'scalar' && isDType(dtype)) return Object.freeze({ kind, dtype, byteSize: DTYPES[dtype].byteSize });
  if (kind === 'array' && isDType(dtype) && ACCESSES.includes(access) && RANKS.includes(rank))
    return Object.freeze({ kind, dtype, access: access as Access, rank: rank as Rank });
  if (kind !== 'optional') return undefined;
  const own = plainParam(array);
  return own?.kind === 'array' ? Object.freeze({ kind, array: own }) : undefined;
}
