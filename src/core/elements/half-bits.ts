// The bits of f16 and bf16 numbers, from the bits of f32: both formats have fewer bits of everything.
const singles = new Float32Array(1);
const words = new Uint32Array(singles.buffer);

const SIGN = 0x8000;
const INFINITE = 0x7f800000;
/** By which the exponents of f32 and f16 differ, at their place in f32. */
const REBIAS = (127 - 15) << 23;
/** As f32: 2^-14, the least normal f16; and 2^16, beyond all of them. */
const LEAST_NORMAL = 0x38800000;
const BEYOND = 0x47800000;
const LEAST_SUBNORMAL = 2 ** -24;

/** The bits of the nearest number of the type, ties to even: rounded once, also where a rounding to f32 would come first. */
export function bitsOf16(dtype: 'f16' | 'bf16', value: number): number {
  return dtype === 'f16' ? halfBits(value) : bfloatBits(value);
}

/** The number that the bits of an element stand for. */
export function numberOf16(dtype: 'f16' | 'bf16', bits: number): number {
  return dtype === 'f16' ? halfNumber(bits) : bfloatNumber(bits);
}

/**
 * The bits of the f32 towards zero from the value, with its last bit set unless it is the value: a second rounding, to fewer bits, then
 * gives what one rounding of the value would give.
 */
function roundedToOdd(value: number): number {
  const single = Math.fround(value);
  singles[0] = single;
  const bits = words[0] as number;
  if (single === value || value !== value) return bits;
  return (Math.abs(single) > Math.abs(value) ? bits - 1 : bits) | 1;
}

export function bfloatBits(value: number): number {
  if (value !== value) return 0x7fc0;
  const bits = roundedToOdd(value);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

export function halfBits(value: number): number {
  if (value !== value) return 0x7e00;
  const bits = roundedToOdd(value);
  const sign = (bits >>> 16) & SIGN;
  const size = bits & 0x7fffffff;
  if (size >= BEYOND) return sign | 0x7c00;
  if (size >= LEAST_NORMAL) return sign | ((size - REBIAS + 0xfff + ((size >>> 13) & 1)) >>> 13);
  const dropped = 126 - (size >>> 23);
  // Less than half of the least number.
  if (dropped > 24) return sign;
  const fraction = (size & 0x7fffff) | 0x800000;
  return sign | ((fraction + (1 << (dropped - 1)) - 1 + ((fraction >>> dropped) & 1)) >>> dropped);
}

export function bfloatNumber(bits: number): number {
  words[0] = bits << 16;
  return singles[0] as number;
}

export function halfNumber(bits: number): number {
  const size = bits & 0x7fff;
  if (size < 0x400) return (bits & SIGN ? -size : size) * LEAST_SUBNORMAL;
  words[0] = ((bits & SIGN) << 16) | (size < 0x7c00 ? (size << 13) + REBIAS : INFINITE | (size << 13));
  return singles[0] as number;
}
