// Element types: their names, sizes, typed arrays and scalars. NumPy's, CuPy's and Warp's list.
import { badArgument, show } from '../base/arguments.js';
import { typedArrayName } from '../base/buffers.js';

export type DType = 'bool' | 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64' | 'f16' | 'f32' | 'f64';

/** The typed array class of each element type. */
export interface HostOf<B extends ArrayBufferLike = ArrayBufferLike> {
  bool: Uint8Array<B>;
  i8: Int8Array<B>;
  u8: Uint8Array<B>;
  i16: Int16Array<B>;
  u16: Uint16Array<B>;
  i32: Int32Array<B>;
  u32: Uint32Array<B>;
  i64: BigInt64Array<B>;
  u64: BigUint64Array<B>;
  /** Raw half bits. */
  f16: Uint16Array<B>;
  f32: Float32Array<B>;
  f64: Float64Array<B>;
}
export type HostArray = HostOf[DType];

/** What JavaScript reads from an element. */
export type HostValue<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint : number;
/** What a caller may pass for a scalar: numbers are accepted for 64-bit integers when they are safe. */
export type ScalarInput<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint | number : number;

/** An element type as a value: a kernel's scalar parameter, or the dtype argument of an array factory. */
export interface Scalar<D extends DType = DType> {
  readonly kind: 'scalar';
  readonly dtype: D;
  readonly byteSize: number;
}
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
  f32: { byteSize: 4, make: Float32Array },
  f64: { byteSize: 8, make: Float64Array },
};

function scalar<D extends DType>(dtype: D): Scalar<D> {
  return Object.freeze({ kind: 'scalar', dtype, byteSize: DTYPES[dtype].byteSize } as const);
}

export const bool: Scalar<'bool'> = scalar('bool');
export const i8: Scalar<'i8'> = scalar('i8');
export const u8: Scalar<'u8'> = scalar('u8');
export const i16: Scalar<'i16'> = scalar('i16');
export const u16: Scalar<'u16'> = scalar('u16');
export const i32: Scalar<'i32'> = scalar('i32');
export const u32: Scalar<'u32'> = scalar('u32');
export const i64: Scalar<'i64'> = scalar('i64');
export const u64: Scalar<'u64'> = scalar('u64');
export const f16: Scalar<'f16'> = scalar('f16');
export const f32: Scalar<'f32'> = scalar('f32');
export const f64: Scalar<'f64'> = scalar('f64');

/** Is it the name of an element type? */
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

/** The element type that a host array, of whichever realm, has when none is named; undefined when it is no typed array. */
export function dtypeOfHost(data: unknown): DType | undefined {
  const name = typedArrayName(data);
  return name === undefined ? undefined : DTYPE_OF_HOST[name];
}

/** The element type that a name or a scalar type stands for. Throws for what is neither. */
export function checkDType<D extends DType>(dtype: DTypeLike<D> | undefined, fallback: DType = 'f32'): D {
  if (dtype === undefined) return fallback as D;
  const name = typeof dtype === 'object' && dtype !== null ? dtype.dtype : dtype;
  if (!isDType(name)) {
    throw badArgument('dtype', dtype, `The dtype (${show(dtype)}) is none of ${Object.keys(DTYPES).join(', ')}.`);
  }
  return name;
}

/** Can this ordinary array hold elements of the dtype? */
export function isHostOf(data: unknown, dtype: DType): data is HostArray {
  const name = typedArrayName(data);
  return name === DTYPES[dtype].make.name || (dtype === 'u8' && name === 'Uint8ClampedArray');
}
