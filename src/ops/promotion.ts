// The element type of a result, by NumPy's rules. A number beside an array has the array's kind if it can (NEP 50).
import { badArgument, show } from '../core/base/arguments.js';
import { DTYPES, type DType } from '../core/elements/dtype.js';

/** The types that hold every value of a type, as far as NumPy thinks so: `numpy.can_cast`. bf16 is as far from integers as f16 is. */
const CASTS_TO = {
  bool: ['bool', 'u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64', 'f16', 'bf16', 'f32', 'f64'],
  u8: ['u8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64', 'f16', 'bf16', 'f32', 'f64'],
  i8: ['i8', 'i16', 'i32', 'i64', 'f16', 'bf16', 'f32', 'f64'],
  u16: ['u16', 'u32', 'i32', 'u64', 'i64', 'f32', 'f64'],
  i16: ['i16', 'i32', 'i64', 'f32', 'f64'],
  u32: ['u32', 'u64', 'i64', 'f64'],
  i32: ['i32', 'i64', 'f64'],
  u64: ['u64', 'f64'],
  i64: ['i64', 'f64'],
  f16: ['f16', 'f32', 'f64'],
  bf16: ['bf16', 'f32', 'f64'],
  f32: ['f32', 'f64'],
  f64: ['f64'],
} as const;
type CastsTo = typeof CASTS_TO;

type FirstOf<List extends readonly DType[], Allowed extends DType> = List extends readonly [
  infer D extends DType,
  ...infer Rest extends readonly DType[],
]
  ? D extends Allowed
    ? D
    : FirstOf<Rest, Allowed>
  : never;
/** The type of two arrays together: `numpy.promote_types`. */
export type Promoted<A extends DType, B extends DType> = FirstOf<CastsTo[A], CastsTo[B][number]>;

export type FloatType = 'f16' | 'bf16' | 'f32' | 'f64';
/** The type of a function of real numbers: `numpy.sqrt(x).dtype`, but never f16 for integers, of which the host has no numbers. */
export type FloatOf<D extends DType> = D extends FloatType ? D : D extends 'bool' | 'u8' | 'i8' | 'u16' | 'i16' ? 'f32' : 'f64';
/** The type of a quotient: `numpy.divide(a, b).dtype`. */
export type QuotientOf<D extends DType> = D extends FloatType ? D : 'f64';
/** The type of sums and products: `numpy.sum(x).dtype`. */
export type SumOf<D extends DType> = D extends FloatType ? D : D extends `u${string}` ? 'u64' : 'i64';
/** The type of an array beside a number. A fraction beside integers gives f64, which the type system cannot tell from a whole number. */
export type BesideNumber<D extends DType> = D extends FloatType ? D : D extends 'bool' ? 'i64' | 'f64' : D | 'f64';

export function isFloat(dtype: DType): dtype is FloatType {
  return dtype.includes('f');
}

export function promoted(a: DType, b: DType): DType {
  const allowed: readonly DType[] = CASTS_TO[b];
  // f64 is in every list.
  return CASTS_TO[a].find((dtype) => allowed.includes(dtype)) as DType;
}

export function floatOf(dtype: DType): DType {
  return isFloat(dtype) ? dtype : DTYPES[dtype].byteSize <= 2 ? 'f32' : 'f64';
}

export function quotientOf(dtype: DType): DType {
  return isFloat(dtype) ? dtype : 'f64';
}

export function sumOf(dtype: DType): DType {
  if (isFloat(dtype)) return dtype;
  return dtype.startsWith('u') ? 'u64' : 'i64';
}

const KINDS = ['bool', 'unsigned', 'signed', 'float'] as const;

function kindOf(dtype: DType): (typeof KINDS)[number] {
  if (dtype === 'bool' || isFloat(dtype)) return dtype === 'bool' ? 'bool' : 'float';
  return dtype.startsWith('u') ? 'unsigned' : 'signed';
}

/** Whether results of a type go into an array of another one without saying so: `numpy.can_cast(from, to, 'same_kind')`. */
export function isSameKind(from: DType, to: DType): boolean {
  return KINDS.indexOf(kindOf(from)) <= KINDS.indexOf(kindOf(to));
}

/** The smallest and the largest value of an integer type. */
export function integerRange(dtype: DType): readonly [low: bigint, high: bigint] {
  const bits = BigInt(DTYPES[dtype].byteSize * 8);
  return dtype.startsWith('u') ? [0n, (1n << bits) - 1n] : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
}

/** Throws ArgumentError for whole numbers outside the range of an integer type. */
export function checkRange(what: string, numbers: readonly number[], dtype: DType): void {
  if (dtype === 'bool' || isFloat(dtype)) return;
  const [low, high] = integerRange(dtype);
  for (const value of numbers) {
    if (value > Number(low) - 1 && value < Number(high) + 1) continue;
    throw badArgument(
      'dtype',
      dtype,
      `The ${what} (up to ${value}) do not fit the type ${dtype} (${low} to ${high}): give another dtype.`,
      dtype,
    );
  }
}

/** The type of a number beside an array of this type. Throws ArgumentError for an integer outside the range of the array's integers. */
export function besideNumber(dtype: DType, value: unknown): DType {
  if (typeof value === 'boolean' || isFloat(dtype)) return dtype;
  if (typeof value === 'number' && !Number.isInteger(value)) return 'f64';
  if (dtype === 'bool') return 'i64';
  const [low, high] = integerRange(dtype);
  const whole = BigInt(value as number | bigint);
  if (whole < low || whole > high) {
    const message = `The number (${show(value)}) does not fit the array's type ${dtype} (${low} to ${high}): astype() the array first.`;
    throw badArgument('value', value, message, dtype);
  }
  return dtype;
}
