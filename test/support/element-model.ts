// Elements of every type as plain values: integers and bool as bigint, floats as number. NumPy's promotion and casts, written down once more.
import type { DType } from 'millrace';
import { BFLOAT16, HALF, narrowed, narrowedInteger, type SmallFormat, widened } from './half-numbers.js';

export type Value = number | bigint;
export type HostArray = Exclude<ArrayBufferView, DataView> & { readonly length: number; [n: number]: Value };

const HOSTS = {
  bool: Uint8Array,
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  u32: Uint32Array,
  i32: Int32Array,
  u64: BigUint64Array,
  i64: BigInt64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;
const SMALL: Readonly<Partial<Record<DType, SmallFormat>>> = { f16: HALF, bf16: BFLOAT16 };
/** The bits of the fraction. */
const PRECISION: Readonly<Partial<Record<DType, number>>> = { f16: 10, bf16: 7, f32: 23, f64: 52 };
const LEAST_EXPONENT: Readonly<Partial<Record<DType, number>>> = { f16: -14, bf16: -126, f32: -126, f64: -1022 };

export const isFloat = (dtype: DType): boolean => dtype in PRECISION;
export const bitsOf = (dtype: DType): number => (dtype === 'bool' ? 1 : Number(/\d+/.exec(dtype)![0]));
const isSigned = (dtype: DType): boolean => dtype.startsWith('i');

/** What the host writes and reads. */
export function encoded(dtype: DType, values: readonly Value[]): HostArray {
  const small = SMALL[dtype];
  const is64 = dtype === 'i64' || dtype === 'u64';
  const each = (value: Value): Value => (small ? narrowed(small, Number(value)) : is64 ? BigInt(value) : Number(value));
  return (HOSTS[dtype] as unknown as { from(values: readonly Value[]): HostArray }).from(values.map(each));
}

export function decoded(dtype: DType, host: HostArray): Value[] {
  const small = SMALL[dtype];
  return Array.from({ length: host.length }, (_, n) =>
    small ? widened(small, Number(host[n])) : isFloat(dtype) ? host[n]! : BigInt(host[n]!),
  );
}

/** A number in the precision of a float type. */
export function rounded(dtype: DType, value: number): number {
  const small = SMALL[dtype];
  return small ? widened(small, narrowed(small, value)) : dtype === 'f32' ? Math.fround(value) : value;
}

/** The nearest f32 of an integer, in one rounding. */
function single(value: bigint): number {
  const size = value < 0n ? -value : value;
  const dropped = BigInt(Math.max(0, size.toString(2).length - 40));
  const kept = (size >> dropped) | (size & ((1n << dropped) - 1n) ? 1n : 0n);
  return Math.fround(Number(kept << dropped)) * (value < 0n ? -1 : 1);
}

/** NaN is true. */
export const isTrue = (value: Value): boolean => value !== 0 && value !== 0n;

/** As `astype` says: integers wrap, floats saturate at 32 or 64 bits, NaN becomes 0, whatever is not 0 is true. */
export function cast(value: Value, to: DType): Value {
  if (to === 'bool') return isTrue(value) ? 1n : 0n;
  if (isFloat(to)) {
    if (typeof value === 'number') return rounded(to, value);
    const small = SMALL[to];
    return small ? widened(small, narrowedInteger(small, value, 'rn')) : to === 'f32' ? single(value) : Number(value);
  }
  const bits = bitsOf(to);
  const fit = (whole: bigint): bigint => (isSigned(to) ? BigInt.asIntN : BigInt.asUintN)(bits, whole);
  if (typeof value === 'bigint') return fit(value);
  if (Number.isNaN(value)) return 0n;
  const wide = BigInt(Math.max(bits, 32));
  const [low, high] = to.startsWith('u') && bits >= 32 ? [0n, 2n ** wide - 1n] : [-(2n ** (wide - 1n)), 2n ** (wide - 1n) - 1n];
  const whole = value === Infinity ? high : value === -Infinity ? low : BigInt(Math.trunc(value));
  return fit(whole < low ? low : whole > high ? high : whole);
}

/** `numpy.promote_types`, with bf16 as near to integers as f16. */
export function promotedTypes(a: DType, b: DType): DType {
  if (a === b || b === 'bool') return a;
  if (a === 'bool') return b;
  if (isFloat(a) && isFloat(b)) return bitsOf(a) === bitsOf(b) ? 'f32' : bitsOf(a) > bitsOf(b) ? a : b;
  if (isFloat(a) || isFloat(b)) {
    const [float, integer] = isFloat(a) ? [a, b] : [b, a];
    const needed = bitsOf(integer) * 2;
    return needed <= bitsOf(float) ? float : needed <= 32 ? 'f32' : 'f64';
  }
  if (isSigned(a) === isSigned(b)) return bitsOf(a) > bitsOf(b) ? a : b;
  const [signed, unsigned] = isSigned(a) ? [a, b] : [b, a];
  if (bitsOf(signed) > bitsOf(unsigned)) return signed;
  return bitsOf(unsigned) === 64 ? 'f64' : (`i${bitsOf(unsigned) * 2}` as DType);
}

/** The type of a number beside arrays of a type. */
export function numberType(dtype: DType, value: Value): DType {
  if (isFloat(dtype)) return dtype;
  if (typeof value === 'number' && !Number.isInteger(value)) return 'f64';
  return dtype === 'bool' ? 'i64' : dtype;
}

export function realType(dtype: DType): DType {
  return isFloat(dtype) ? dtype : bitsOf(dtype) <= 16 ? 'f32' : 'f64';
}

/** The distance between a number of the type and the next. */
export function ulpOf(dtype: DType, value: number): number {
  const size = Math.abs(value);
  if (!Number.isFinite(size)) return 0;
  let exponent = size === 0 ? -2000 : Math.floor(Math.log2(size));
  if (size < 2 ** exponent) exponent--;
  return 2 ** (Math.max(exponent, LEAST_EXPONENT[dtype]!) - PRECISION[dtype]!);
}

export const epsilonOf = (dtype: DType): number => 2 ** -PRECISION[dtype]!;

const INTERESTING = [0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -7, 10, 100.25, 1e-3];
const EXTREME = [
  Number.NaN,
  Infinity,
  -Infinity,
  Number.NaN,
  65504,
  -3e38,
  3e38,
  1e-40,
  -1e-45,
  6e-8,
  2e-39,
  1e300,
  -1e-310,
  5e-324,
  4294967296,
  -2147483649,
  1e19,
];

/** What a value is like: any of the type, or small and finite. */
export type Range = 'any' | 'small';

export function randomValue(dtype: DType, range: Range, random: (below: number) => number): Value {
  const one = (): number => random(1 << 30) / (1 << 30);
  if (dtype === 'bool') return BigInt(random(2));
  if (isFloat(dtype)) {
    const kind = random(8);
    if (range === 'small') return rounded(dtype, kind === 0 ? INTERESTING[random(INTERESTING.length)]! : (one() - 0.5) * 8);
    if (kind === 0) return rounded(dtype, EXTREME[random(EXTREME.length)]!);
    if (kind <= 2) return rounded(dtype, INTERESTING[random(INTERESTING.length)]!);
    return rounded(dtype, kind === 3 ? (one() - 0.5) * 2 ** (random(60) - 30) : (one() - 0.5) * 20);
  }
  const bits = bitsOf(dtype);
  const fit = isSigned(dtype) ? BigInt.asIntN : BigInt.asUintN;
  if (range === 'small') return fit(bits, BigInt(random(9)) - (isSigned(dtype) ? 4n : 0n));
  const high = isSigned(dtype) ? 2n ** BigInt(bits - 1) - 1n : 2n ** BigInt(bits) - 1n;
  const kind = random(8);
  if (kind === 0) return [high, isSigned(dtype) ? -high - 1n : 0n, high - 1n, isSigned(dtype) ? -high : 1n][random(4)]!;
  if (kind <= 4) return fit(bits, BigInt(random(21) - 10));
  return fit(bits, (BigInt(random(1 << 30)) << 34n) ^ (BigInt(random(1 << 30)) << 10n) ^ BigInt(random(1 << 10)));
}
