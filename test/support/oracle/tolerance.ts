// How far from the exact value a device's functions may be, in units of the last place: what CUDA's programming guide and
// the manual of the GNU C library state for each. The CPU device's functions of f32 are those of native/cpu/shim/float_functions.h.
import type { Target } from '../target.js';

interface Ulps {
  readonly cpu: number;
  readonly cuda: number;
}
interface Inexact {
  readonly arity: 1 | 2;
  readonly f32: Ulps;
  readonly f64: Ulps;
}

function row(arity: 1 | 2, f32: readonly [cpu: number, cuda: number], f64: readonly [cpu: number, cuda: number]): Inexact {
  return { arity, f32: { cpu: f32[0], cuda: f32[1] }, f64: { cpu: f64[0], cuda: f64[1] } };
}

/** Of f32 and f64, each on the CPU device and on CUDA. */
export const INEXACT: Readonly<Record<string, Inexact>> = {
  sin: row(1, [2, 2], [1, 2]),
  cos: row(1, [2, 2], [1, 2]),
  tan: row(1, [1, 4], [1, 2]),
  asin: row(1, [1, 2], [1, 2]),
  acos: row(1, [1, 2], [1, 2]),
  atan: row(1, [1, 2], [1, 2]),
  atan2: row(2, [1, 3], [1, 2]),
  sinh: row(1, [1, 3], [2, 2]),
  cosh: row(1, [1, 2], [2, 1]),
  tanh: row(1, [2, 2], [2, 1]),
  asinh: row(1, [1, 3], [2, 3]),
  acosh: row(1, [1, 4], [2, 3]),
  atanh: row(1, [1, 3], [2, 2]),
  exp: row(1, [1, 2], [1, 1]),
  expm1: row(1, [1, 1], [1, 1]),
  log: row(1, [1, 1], [1, 1]),
  log2: row(1, [1, 1], [2, 1]),
  log10: row(1, [1, 2], [2, 1]),
  log1p: row(1, [1, 1], [1, 1]),
  pow: row(2, [1, 4], [1, 2]),
  cbrt: row(1, [1, 1], [4, 1]),
  hypot: row(2, [1, 3], [1, 2]),
  rsqrt: row(1, [2, 2], [2, 1]),
};

/** JavaScript's own functions are what f64 is compared with, and they are off by as much. */
const OWN_ULPS = 1;

export function allowedUlps(name: string, type: 'f32' | 'f64', target: Target): number {
  // The stand-in for CUDA's driver computes with the C library.
  const { cpu, cuda } = INEXACT[name]![type];
  const stated = target.name === 'cuda' ? cuda : cpu;
  return type === 'f64' ? stated + OWN_ULPS : stated;
}

/** What JavaScript gives; undefined where C gives something else. */
export function inexact(name: string, type: 'f32' | 'f64', a: number, b: number): number | undefined {
  // 1 to the power of anything is 1 in C, and so is -1 to the power of an infinity.
  if (name === 'pow' && Math.abs(a) === 1 && !Number.isFinite(b)) return undefined;
  const functions = Math as unknown as Readonly<Record<string, (...args: number[]) => number>>;
  const value = name === 'rsqrt' ? 1 / Math.sqrt(a) : INEXACT[name]!.arity === 1 ? functions[name]!(a) : functions[name]!(a, b);
  return type === 'f32' ? Math.fround(value) : value;
}

/** Numbers of the type between two of them. */
export function ulpsBetween(type: 'f32' | 'f64', a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b) ? 0 : Number.POSITIVE_INFINITY;
  const distance = place(type, a) - place(type, b);
  return Number(distance < 0n ? -distance : distance);
}

const words = new DataView(new ArrayBuffer(8));

/** Numbers of the type from 0 on, both zeros being one. */
function place(type: 'f32' | 'f64', value: number): bigint {
  if (type === 'f32') words.setFloat32(0, Math.abs(value));
  else words.setFloat64(0, Math.abs(value));
  const magnitude = type === 'f32' ? BigInt(words.getUint32(0)) : words.getBigUint64(0);
  return value < 0 ? -magnitude : magnitude;
}
