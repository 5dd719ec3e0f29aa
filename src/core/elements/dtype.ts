// Element types: their names, sizes, typed arrays and scalars. The list is that of NumPy, CuPy and Warp, and bfloat16 as PyTorch has it.
import { typedArrayName } from '../base/buffers.js';

/** The name of an element type; the number is its size in bits (`bool` has 8). `bf16` is bfloat16. */
export type DType = 'bool' | 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64' | 'f16' | 'bf16' | 'f32' | 'f64';

/** The typed array class of each element type on the host. */
export interface HostOf<B extends ArrayBufferLike = ArrayBufferLike> {
  /** One byte an element: 0 or 1. */
  bool: Uint8Array<B>;
  /** Signed 8-bit integers. */
  i8: Int8Array<B>;
  /** Unsigned 8-bit integers. Copies and array factories accept a Uint8ClampedArray too. */
  u8: Uint8Array<B>;
  /** Signed 16-bit integers. */
  i16: Int16Array<B>;
  /** Unsigned 16-bit integers. */
  u16: Uint16Array<B>;
  /** Signed 32-bit integers. */
  i32: Int32Array<B>;
  /** Unsigned 32-bit integers. */
  u32: Uint32Array<B>;
  /** Signed 64-bit integers, as bigints. */
  i64: BigInt64Array<B>;
  /** Unsigned 64-bit integers, as bigints. */
  u64: BigUint64Array<B>;
  /** Raw half-precision bits. */
  f16: Uint16Array<B>;
  /** Raw bfloat16 bits: the upper halves of f32. */
  bf16: Uint16Array<B>;
  /** IEEE single precision. */
  f32: Float32Array<B>;
  /** IEEE double precision. */
  f64: Float64Array<B>;
}
/** A typed array that elements are copied from and to: one of the classes of `HostOf`. */
export type HostArray = HostOf[DType];

/** The JavaScript value of an element: a boolean, a bigint for 64-bit integers, otherwise a number. */
export type HostValue<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint : number;
/** The JavaScript values that a call accepts for a scalar. For 64-bit integers a number must be a safe integer. */
export type ScalarInput<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint | number : number;

/** An element type as a value: a kernel's scalar parameter, or the dtype argument of an array factory. */
export interface Scalar<D extends DType = DType> {
  /** Tells a scalar parameter of a kernel from an array parameter. */
  readonly kind: 'scalar';
  /** The element type's name. */
  readonly dtype: D;
  /** Bytes of one element. */
  readonly byteSize: number;
}
/** An element type by name ('f32') or by value (`f32`). A call throws ArgumentError for anything else. */
export type DTypeLike<D extends DType> = D | Scalar<D>;

interface DTypeRow {
  readonly byteSize: number;
  readonly make: new (buffer: ArrayBufferLike, byteOffset?: number, length?: number) => HostArray;
}

/** One row per element type. */
export const DTYPES: { readonly [D in DType]: DTypeRow } = {
  bool: { byteSize: 1, make: Uint8Array },
  i8: { byteSize: 1, make: Int8Array },
  u8: { byteSize: 1, make: Uint8Array },
  i16: { byteSize: 2, make: Int16Array },
  u16: { byteSize: 2, make: Uint16Array },
  i32: { byteSize: 4, make: Int32Array },
  u32: { byteSize: 4, make: Uint32Array },
  i64: { byteSize: 8, make: BigInt64Array },
  u64: { byteSize: 8, make: BigUint64Array },
  f16: { byteSize: 2, make: Uint16Array },
  bf16: { byteSize: 2, make: Uint16Array },
  f32: { byteSize: 4, make: Float32Array },
  f64: { byteSize: 8, make: Float64Array },
};

function scalar<D extends DType>(dtype: D): Scalar<D> {
  return Object.freeze({ kind: 'scalar', dtype, byteSize: DTYPES[dtype].byteSize } as const);
}

/** 1 byte, 0 or 1: CUDA's `bool`, NumPy's `bool_`, `wp.bool`. On the host a Uint8Array; single elements are booleans. */
export const bool: Scalar<'bool'> = scalar('bool');
/** Signed, 1 byte: CUDA's `signed char`, NumPy's `int8`, `wp.int8`. On the host an Int8Array. */
export const i8: Scalar<'i8'> = scalar('i8');
/** Unsigned, 1 byte: CUDA's `unsigned char`, NumPy's `uint8`, `wp.uint8`. On the host a Uint8Array. */
export const u8: Scalar<'u8'> = scalar('u8');
/** Signed, 2 bytes: CUDA's `short`, NumPy's `int16`, `wp.int16`. On the host an Int16Array. */
export const i16: Scalar<'i16'> = scalar('i16');
/** Unsigned, 2 bytes: CUDA's `unsigned short`, NumPy's `uint16`, `wp.uint16`. On the host a Uint16Array. */
export const u16: Scalar<'u16'> = scalar('u16');
/** Signed, 4 bytes: CUDA's `int`, NumPy's `int32`, `wp.int32`. On the host an Int32Array. */
export const i32: Scalar<'i32'> = scalar('i32');
/** Unsigned, 4 bytes: CUDA's `unsigned int`, NumPy's `uint32`, `wp.uint32`. On the host a Uint32Array. */
export const u32: Scalar<'u32'> = scalar('u32');
/** Signed, 8 bytes: CUDA's `long long`, NumPy's `int64`, `wp.int64`. On the host a BigInt64Array; single elements are bigints. */
export const i64: Scalar<'i64'> = scalar('i64');
/** Unsigned, 8 bytes: CUDA's `unsigned long long`, NumPy's `uint64`, `wp.uint64`. On the host a BigUint64Array; single elements are bigints. */
export const u64: Scalar<'u64'> = scalar('u64');
/** IEEE half, 2 bytes: CUDA's `__half`, NumPy's `float16`, `wp.float16`. On the host a Uint16Array of raw bits. */
export const f16: Scalar<'f16'> = scalar('f16');
/**
 * bfloat16, 2 bytes: CUDA's `__nv_bfloat16`, PyTorch's `bfloat16`, `ml_dtypes.bfloat16`. On the host a Uint16Array of raw bits, the upper
 * halves of f32; single elements are numbers.
 */
export const bf16: Scalar<'bf16'> = scalar('bf16');
/** IEEE single, 4 bytes: CUDA's `float`, NumPy's `float32`, `wp.float32`. On the host a Float32Array. */
export const f32: Scalar<'f32'> = scalar('f32');
/** IEEE double, 8 bytes: CUDA's `double`, NumPy's `float64`, `wp.float64`. On the host a Float64Array. */
export const f64: Scalar<'f64'> = scalar('f64');

const SCALARS: { readonly [D in DType]: Scalar<D> } = { bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };

/** The element type with this name. */
export function scalarOf<D extends DType>(dtype: D): Scalar<D> {
  return SCALARS[dtype];
}

/** Whether elements are floating-point numbers of 16 bits, which exist in memory only: kernels of TypeScript compute with them as f32. */
export function is16BitFloat(dtype: DType): dtype is 'f16' | 'bf16' {
  return dtype === 'f16' || dtype === 'bf16';
}

/** Whether the value is the name of an element type. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(DTYPES, value);
}

const DTYPE_OF_HOST: { readonly [name: string]: DType } = {
  Float32Array: 'f32',
  Uint8Array: 'u8',
  Uint8ClampedArray: 'u8',
  Float64Array: 'f64',
  Int32Array: 'i32',
  Uint32Array: 'u32',
  Uint16Array: 'u16',
  Int16Array: 'i16',
  Int8Array: 'i8',
  BigInt64Array: 'i64',
  BigUint64Array: 'u64',
};

/** The default element type of a typed array, of any realm; undefined for other values. */
export function dtypeOfHost(data: unknown): DType | undefined {
  const name = typedArrayName(data);
  return name === undefined ? undefined : DTYPE_OF_HOST[name];
}

/** Whether this ordinary array can hold elements of the dtype. */
export function isHostOf(data: unknown, dtype: DType): data is HostArray {
  const name = typedArrayName(data);
  return name === DTYPES[dtype].make.name || (dtype === 'u8' && name === 'Uint8ClampedArray');
}
