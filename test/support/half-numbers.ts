// IEEE half and bfloat16 in plain JavaScript: what CUDA's functions give, bit for bit, computed in another way than the CPU device does.

export interface SmallFormat {
  /** What the functions of CUDA C++ call it, and its stored fraction bits and exponent bias. */
  readonly word: 'half' | 'bfloat16';
  readonly fraction: number;
  readonly bias: number;
}
export const HALF: SmallFormat = { word: 'half', fraction: 10, bias: 15 };
export const BFLOAT16: SmallFormat = { word: 'bfloat16', fraction: 7, bias: 127 };

/** What every operation gives whose result is NaN. */
export const NAN_BITS = 0x7fff;

export type Direction = 'rn' | 'rz' | 'rd' | 'ru';

const infinityOf = ({ fraction, bias }: SmallFormat): number => (2 * bias + 1) << fraction;

export function widened({ fraction, bias }: SmallFormat, bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = bits & ((1 << fraction) - 1);
  if (exponent === 2 * bias + 1) return rest === 0 ? sign * Infinity : Number.NaN;
  return sign * (exponent === 0 ? rest : rest + (1 << fraction)) * 2 ** (Math.max(exponent, 1) - bias - fraction);
}

function roundedUnits(units: number, isNegative: boolean, direction: Direction): number {
  const down = Math.floor(units);
  const rest = units - down;
  const isUp = direction === 'rn' ? rest > 0.5 || (rest === 0.5 && down % 2 === 1) : rest > 0 && direction === (isNegative ? 'rd' : 'ru');
  return isUp ? down + 1 : down;
}

/** The bits of a number after one rounding. */
export function narrowed(format: SmallFormat, value: number, direction: Direction = 'rn'): number {
  const { fraction, bias } = format;
  if (Number.isNaN(value)) return NAN_BITS;
  const isNegative = value < 0 || Object.is(value, -0);
  const [sign, size, infinity] = [isNegative ? 0x8000 : 0, Math.abs(value), infinityOf(format)];
  if (size === Infinity) return sign | infinity;
  // The logarithm may be one off just below a power of two.
  let exponent = size === 0 ? -bias : Math.floor(Math.log2(size));
  if (size < 2 ** exponent) exponent--;
  exponent = Math.max(exponent, 1 - bias);
  if (exponent > bias) return sign | (direction === 'rn' || direction === (isNegative ? 'rd' : 'ru') ? infinity : infinity - 1);
  const units = roundedUnits(size / 2 ** (exponent - fraction), isNegative, direction);
  return sign | (((exponent + bias - 1) << fraction) + units);
}

/** The bits of an integer of any size. */
export function narrowedInteger(format: SmallFormat, value: bigint, direction: Direction): number {
  // A number holds 53 bits: the lowest of the kept ones also stands for those that are dropped.
  const size = value < 0n ? -value : value;
  const kept = size >> 52n === 0n ? size : ((size >> 12n) | (size & 0xfffn ? 1n : 0n)) << 12n;
  return narrowed(format, value < 0n ? -Number(kept) : Number(kept), direction);
}

/** Finite numbers as multiples of 2^-133, the least bfloat16. */
function unitsOf(format: SmallFormat, bits: number): bigint {
  return BigInt(widened(format, bits) * 2 ** 67 * 2 ** 66);
}

/** The bits of x * y + z, from exact integers. */
export function fused(format: SmallFormat, x: number, y: number, z: number): number {
  const [a, b, c] = [widened(format, x), widened(format, y), widened(format, z)];
  if (![a, b, c].every(Number.isFinite)) return narrowed(format, Number.isFinite(a) && Number.isFinite(b) ? c : a * b + c);
  const exact = unitsOf(format, x) * unitsOf(format, y) + (unitsOf(format, z) << 133n);
  if (exact === 0n) return narrowed(format, a * b === 0 ? a * b + c : 0);
  const size = exact < 0n ? -exact : exact;
  const dropped = BigInt(Math.max(0, size.toString(2).length - 53));
  const kept = (size >> dropped) | (size & ((1n << dropped) - 1n) ? 1n : 0n);
  // Twice, because 2^-266 times a number of 53 bits may be below the least double.
  const value = Number(kept) * 2 ** (Number(dropped) - 133) * 2 ** -133;
  return narrowed(format, exact < 0n ? -value : value);
}

export type Unary = readonly [name: string, of: (x: number) => number];
/** CUDA's functions of one number: `h` or `h2` and a name. */
export const UNARY: readonly Unary[] = [
  ['trunc', Math.trunc],
  ['ceil', Math.ceil],
  ['floor', Math.floor],
  ['rint', (x) => (Number.isFinite(x) ? withSign(roundedUnits(Math.abs(x), false, 'rn'), x) : x)],
  ['sqrt', Math.sqrt],
  ['rsqrt', (x) => 1 / Math.sqrt(x)],
  ['rcp', (x) => 1 / x],
  ['log', Math.log],
  ['log2', Math.log2],
  ['log10', Math.log10],
  ['exp', Math.exp],
  ['exp2', (x) => 2 ** x],
  ['exp10', (x) => 10 ** x],
  ['cos', Math.cos],
  ['sin', Math.sin],
  ['tanh', Math.tanh],
  ['abs', Math.abs],
  ['neg', (x) => -x],
];

function withSign(size: number, sign: number): number {
  return sign < 0 || Object.is(sign, -0) ? -size : size;
}

/** The larger or smaller of two, where -0 is below 0 and a number wins over NaN. */
export function extreme(x: number, y: number, isMax: boolean): number {
  if (Number.isNaN(x)) return y;
  return Number.isNaN(y) ? x : isMax ? Math.max(x, y) : Math.min(x, y);
}

/** Within [0, 1]; NaN becomes 0. */
export function saturated(x: number): number {
  return Number.isNaN(x) ? 0 : Math.min(Math.max(x, 0), 1);
}

/** An integer in a type's range, as a GPU converts a number that is rounded already. */
export function saturatedInteger(value: number, bits: number, isSigned: boolean): bigint {
  if (Number.isNaN(value)) return bits === 64 ? (isSigned ? -(2n ** 63n) : 2n ** 63n) : 0n;
  const [low, high] = isSigned ? [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n] : [0n, 2n ** BigInt(bits) - 1n];
  if (value === Infinity) return high;
  if (value === -Infinity) return low;
  const whole = BigInt(value);
  return whole < low ? low : whole > high ? high : whole;
}
