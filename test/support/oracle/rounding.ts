// Rounding to the nearest, ties to even, of what no double holds: exact numbers as `value * 2^exponent`.

export interface Format {
  /** Bits of the significand, the hidden one included. */
  readonly precision: number;
  /** Exponent of the least subnormal number. */
  readonly least: number;
  /** The first power of two beyond. */
  readonly beyond: number;
}
export const F16: Format = { precision: 11, least: -24, beyond: 16 };
export const F32: Format = { precision: 24, least: -149, beyond: 128 };
export const F64: Format = { precision: 53, least: -1074, beyond: 1024 };

/** The nearest number of the format. A zero is positive: callers set the sign. */
export function nearest(value: bigint, exponent: number, format: Format): number {
  const magnitude = value < 0n ? -value : value;
  if (magnitude === 0n) return 0;
  const bits = magnitude.toString(2).length;
  const drop = Math.max(bits - format.precision, format.least - exponent);
  let kept = magnitude;
  let scale = exponent;
  if (drop > 0) {
    const half = 1n << BigInt(drop - 1);
    const rest = magnitude & ((half << 1n) - 1n);
    kept = magnitude >> BigInt(drop);
    scale += drop;
    if (rest > half || (rest === half && (kept & 1n) === 1n)) kept++;
  }
  const sign = value < 0n ? -1 : 1;
  if (kept.toString(2).length + scale > format.beyond) return sign * Number.POSITIVE_INFINITY;
  return sign * scaled(Number(kept), scale);
}

/** `value * 2^exponent` of at most 53 bits, without an intermediate that overflows or loses bits. */
function scaled(value: number, exponent: number): number {
  const half = Math.trunc(exponent / 2);
  return value * 2 ** half * 2 ** (exponent - half);
}

const words = new DataView(new ArrayBuffer(8));

/** A finite number, exactly. */
export function exact(number: number): readonly [value: bigint, exponent: number] {
  words.setFloat64(0, number);
  const bits = words.getBigUint64(0);
  const field = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & ((1n << 52n) - 1n);
  const magnitude = field === 0 ? fraction : fraction | (1n << 52n);
  return [bits >> 63n === 1n ? -magnitude : magnitude, Math.max(field, 1) - 1075];
}

/** a * b + c, rounded once. */
export function fused(a: number, b: number, c: number, format: Format): number {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
  // The product is finite, though no double may hold it.
  if (!Number.isFinite(c)) return c;
  const [[x, ex], [y, ey], [z, ez]] = [exact(a), exact(b), exact(c)];
  const exponent = Math.min(ex + ey, ez);
  const sum = ((x * y) << BigInt(ex + ey - exponent)) + (z << BigInt(ez - exponent));
  if (sum !== 0n) return nearest(sum, exponent, format);
  // Only zeros of one sign make a negative one.
  const isProductNegative = x * y === 0n ? Object.is(a * b, -0) : x * y < 0n;
  return z === 0n && x * y === 0n && isProductNegative && Object.is(c, -0) ? -0 : 0;
}

export function halfFromBits(bits: number): number {
  const sign = bits >> 15 === 1 ? -1 : 1;
  const field = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (field === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return field === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (field - 25);
}

/** Undefined for what is no number: its bits are the device's own. */
export function halfToBits(value: number): number | undefined {
  if (Number.isNaN(value)) return undefined;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const rounded = Number.isFinite(value) ? Math.abs(nearest(...exact(value), F16)) : Number.POSITIVE_INFINITY;
  if (rounded === Number.POSITIVE_INFINITY) return sign | 0x7c00;
  if (rounded < 2 ** -14) return sign | (rounded * 2 ** 24);
  const exponent = Math.floor(Math.log2(rounded));
  return sign | ((exponent + 15) << 10) | (rounded * 2 ** (10 - exponent) - 1024);
}
