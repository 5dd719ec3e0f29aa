// The functions of the language: one row each, with its type rule and its spelling in CUDA C++.
//
// A spelling that begins with `mr_` is a helper of prelude.ts; the others are CUDA's own, and the CPU build's CUDA
// header provides them.
import type { ScalarType } from './ir.js';

/**
 * How arguments and result are typed.
 * - `float`: arguments become f32 (f64 when one is), the result is the same.
 * - `number`: arguments meet as operands of `+` do, the result is the same.
 * - `round`: one number; an integer is its own result.
 */
export type BuiltinRule = 'float' | 'number' | 'round';

export interface Builtin {
  readonly rule: BuiltinRule;
  /** Number of arguments; `many` is two or more, taken pairwise. */
  readonly arity: 1 | 2 | 3 | 'many';
  readonly cuda: { readonly [T in Exclude<ScalarType, 'bool'>]?: string };
  /** The same on numbers of the text, where that is not `Math[name]`. */
  readonly fold?: (...args: number[]) => number;
}

function float(name: string, arity: 1 | 2 = 1): Builtin {
  return { rule: 'float', arity, cuda: { f32: `${name}f`, f64: name } };
}
function round(name: string): Builtin {
  return { rule: 'round', arity: 1, cuda: { f32: `${name}f`, f64: name } };
}
function everyType(name: string): Builtin['cuda'] {
  return { i32: `${name}_i32`, u32: `${name}_u32`, f32: `${name}_f32`, f64: `${name}_f64` };
}

export const BUILTINS: Readonly<Record<string, Builtin>> = {
  abs: { rule: 'number', arity: 1, cuda: { i32: 'mr_abs_i32', u32: '', f32: 'fabsf', f64: 'fabs' } },
  sign: { rule: 'number', arity: 1, cuda: everyType('mr_sign') },
  min: { rule: 'number', arity: 'many', cuda: everyType('mr_min') },
  max: { rule: 'number', arity: 'many', cuda: everyType('mr_max') },
  clamp: { rule: 'number', arity: 3, cuda: everyType('mr_clamp'), fold: (v, lo, hi) => Math.min(Math.max(v, lo), hi) },
  mix: { rule: 'float', arity: 3, cuda: { f32: 'mr_mix_f32', f64: 'mr_mix_f64' }, fold: (a, b, t) => a + (b - a) * t },
  floor: round('floor'),
  ceil: round('ceil'),
  trunc: round('trunc'),
  round: { rule: 'round', arity: 1, cuda: { f32: 'mr_round_f32', f64: 'mr_round_f64' } },
  sqrt: float('sqrt'),
  cbrt: float('cbrt'),
  exp: float('exp'),
  log: float('log'),
  log2: float('log2'),
  log10: float('log10'),
  pow: float('pow', 2),
  sin: float('sin'),
  cos: float('cos'),
  tan: float('tan'),
  asin: float('asin'),
  acos: float('acos'),
  atan: float('atan'),
  atan2: float('atan2', 2),
  sinh: float('sinh'),
  cosh: float('cosh'),
  tanh: float('tanh'),
  hypot: float('hypot', 2),
};

/** Members of `Math` that are numbers. */
export const MATH_NUMBERS: Readonly<Record<string, number>> = {
  PI: Math.PI,
  E: Math.E,
  LN2: Math.LN2,
  LN10: Math.LN10,
  LOG2E: Math.LOG2E,
  LOG10E: Math.LOG10E,
  SQRT2: Math.SQRT2,
  SQRT1_2: Math.SQRT1_2,
};

/** Members of `Math` with a rule of their own (calls.ts). */
export const SPECIAL_MATH: readonly string[] = ['fround', 'imul', 'clz32'];

/** Functions of the second parameter that give a value. */
export const THREAD_FUNCTIONS: readonly string[] = ['idiv', 'clamp', 'mix'];
export const CASTS: readonly string[] = ['i32', 'u32', 'f32', 'f64'];
/** Element types by name. Those that are also casts are called, the others only named. */
export const TYPE_NAMES: readonly string[] = ['bool', 'i8', 'u8', 'i16', 'u16', ...CASTS];
export const THREAD_VECTORS: readonly string[] = ['threadIdx', 'blockIdx', 'blockDim', 'gridDim'];
export const THREAD_INDICES: readonly string[] = ['i', 'j', 'k'];

/** Functions that declare memory (memory.ts). */
export const MEMORY_FUNCTIONS: readonly string[] = ['shared', 'sharedDynamic', 'local'];
/** Functions that are statements of their own (effects.ts). */
export const EFFECT_FUNCTIONS: readonly string[] = ['syncthreads', 'syncwarp', 'gridSync', 'threadfence', 'print', 'assert'];
/** Names of CUDA that kernels in TypeScript do not have. */
export const ABSENT_FUNCTIONS: readonly string[] = ['rng'];
