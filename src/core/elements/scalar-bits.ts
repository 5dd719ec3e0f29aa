// Checks a scalar value and converts it to the bits of its element type. Kernel arguments and fill patterns are written as two
// 32-bit halves, so that only 64-bit integers given as BigInt need BigInt arithmetic.
import { badArgument, show } from '../base/arguments.js';
import { type DType, type HostValue, is16BitFloat } from './dtype.js';
import { bitsOf16, numberOf16 } from './half-bits.js';

export const TWO_32 = 4294967296;

interface IntegerRange {
  readonly low: number;
  readonly high: number;
}
/** What numbers each integer type can hold exactly. */
export const INTEGERS: { readonly [D in DType]?: IntegerRange } = {
  i8: { low: -128, high: 127 },
  u8: { low: 0, high: 255 },
  i16: { low: -32768, high: 32767 },
  u16: { low: 0, high: 65535 },
  i32: { low: -2147483648, high: 2147483647 },
  u32: { low: 0, high: 4294967295 },
  i64: { low: Number.MIN_SAFE_INTEGER, high: Number.MAX_SAFE_INTEGER },
  u64: { low: 0, high: Number.MAX_SAFE_INTEGER },
};

/** The bits of a value, in halves; `high` is 0 unless the element type has 64 bits. */
export interface ScalarBits {
  readonly low: number;
  readonly high: number;
}

const floats = new Float64Array(1);
const words = new Uint32Array(floats.buffer);
const singles = new Float32Array(floats.buffer);

/** The bits of a value. Throws ArgumentError if the element type cannot hold it; `name` is what the error calls it. */
export function scalarBits(dtype: DType, value: unknown, name: string): ScalarBits {
  switch (dtype) {
    case 'bool':
      if (typeof value !== 'boolean') throw wrongType(name, value, 'a boolean', dtype);
      return { low: value ? 1 : 0, high: 0 };
    case 'f32':
      if (typeof value !== 'number') throw wrongType(name, value, 'a number', dtype);
      singles[0] = value;
      return { low: words[0] as number, high: 0 };
    case 'f64':
      if (typeof value !== 'number') throw wrongType(name, value, 'a number', dtype);
      floats[0] = value;
      return { low: words[0] as number, high: words[1] as number };
    case 'f16':
    case 'bf16':
      if (typeof value !== 'number') throw wrongType(name, value, 'a number', dtype);
      return { low: bitsOf16(dtype, value), high: 0 };
    case 'i64':
    case 'u64':
      if (typeof value === 'bigint') return bigIntBits(dtype, value, name);
  }
  const { low, high } = INTEGERS[dtype] as IntegerRange;
  if (typeof value !== 'number')
    throw wrongType(name, value, dtype === 'i64' || dtype === 'u64' ? 'a bigint or a whole number' : 'a number', dtype);
  if (!Number.isInteger(value)) throw badArgument(name, value, `The ${dtype} ${name} (${value}) is not a whole number.`);
  if (value < low) throw badArgument(name, value, `The ${dtype} ${name} (${value}) is below the minimum (${low}).`, low);
  if (value > high) throw badArgument(name, value, `The ${dtype} ${name} (${value}) exceeds the limit (${high}).`, high);
  return { low: value >>> 0, high: Math.floor(value / TWO_32) >>> 0 };
}

function bigIntBits(dtype: 'i64' | 'u64', value: bigint, name: string): ScalarBits {
  const fitted = dtype === 'i64' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value);
  if (fitted !== value) {
    const isBelow = value < 0n;
    const limit = isBelow ? (dtype === 'i64' ? -(2n ** 63n) : 0n) : dtype === 'i64' ? 2n ** 63n - 1n : 2n ** 64n - 1n;
    const what = isBelow ? 'is below the minimum' : 'exceeds the limit';
    throw badArgument(name, value, `The ${dtype} ${name} (${show(value)}) ${what} (${limit}n).`, limit);
  }
  return { low: Number(value & 0xffffffffn), high: Number((value >> 32n) & 0xffffffffn) };
}

function wrongType(name: string, value: unknown, wanted: string, dtype: DType): Error {
  const own = typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'i64' : undefined;
  const hint = own === undefined || dtype === own ? '' : ` Elements of that kind have the dtype '${own}'.`;
  return badArgument(name, value, `The ${dtype} ${name} (${show(value)}) is not ${wanted}.${hint}`);
}

/** The element that a host array of this type stores for a value. */
export function hostElement(dtype: DType, value: unknown, name: string): number | bigint {
  const { low } = scalarBits(dtype, value, name);
  if (dtype === 'i64' || dtype === 'u64') return BigInt(value as number | bigint);
  return dtype === 'bool' || is16BitFloat(dtype) ? low : (value as number);
}

/** The JavaScript value of a stored element. */
export function elementValue<D extends DType>(dtype: D, stored: number | bigint): HostValue<D> {
  const value = dtype === 'bool' ? stored !== 0 : is16BitFloat(dtype) ? numberOf16(dtype, stored as number) : stored;
  return value as HostValue<D>;
}
