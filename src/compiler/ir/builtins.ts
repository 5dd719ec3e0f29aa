// Functions of the kernel language: one row each, with the type rule and the CUDA C++ spelling.
//
// A spelling that begins with `mr_` is a helper of prelude.ts; the others are CUDA's own, and the CPU build's CUDA header defines them.
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
  /** The function on literals, where it differs from `Math[name]`. */
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
  min: { rule: 'number', arity: 'many', cuda: { ...everyType('mr_min'), i64: 'mr_min_i64', u64: 'mr_min_u64' } },
  max: { rule: 'number', arity: 'many', cuda: { ...everyType('mr_max'), i64: 'mr_max_i64', u64: 'mr_max_u64' } },
  clamp: {
    rule: 'number',
    arity: 3,
    cuda: { ...everyType('mr_clamp'), i64: 'mr_clamp_i64', u64: 'mr_clamp_u64' },
    fold: (v, lo, hi) => Math.min(Math.max(v, lo), hi),
  },
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
  expm1: float('expm1'),
  log1p: float('log1p'),
  asinh: float('asinh'),
  acosh: float('acosh'),
  atanh: float('atanh'),
  rsqrt: { rule: 'float', arity: 1, cuda: { f32: 'rsqrtf', f64: 'rsqrt' }, fold: (v) => 1 / Math.sqrt(v) },
  fma: { rule: 'float', arity: 3, cuda: { f32: 'fmaf', f64: 'fma' } },
  // Rows of BIT_FUNCTIONS, typed by their results.
  popcount: { rule: 'number', arity: 1, cuda: { i32: '__popc' } },
  floatBits: { rule: 'number', arity: 1, cuda: { u32: '__float_as_uint' } },
  bitsFloat: { rule: 'number', arity: 1, cuda: { f32: '__uint_as_float' } },
  // What `x | 0` of a float means.
  wrapF32: { rule: 'number', arity: 1, cuda: { i32: 'mr_wrap_f32' } },
  wrapF64: { rule: 'number', arity: 1, cuda: { i32: 'mr_wrap_f64' } },
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

/** Rows that JavaScript's `Math` does not have. */
export const ABSENT_IN_MATH: readonly string[] = [
  'clamp',
  'mix',
  'rsqrt',
  'fma',
  'popcount',
  'floatBits',
  'bitsFloat',
  'wrapF32',
  'wrapF64',
];

interface BitFunction {
  readonly arity: 1 | 2;
  readonly from: ScalarType;
  readonly to: ScalarType;
}
/** Functions with one fixed argument type and one fixed result type. */
export const BIT_FUNCTIONS: Readonly<Record<string, BitFunction>> = {
  'Math.imul': { arity: 2, from: 'i32', to: 'i32' },
  'Math.clz32': { arity: 1, from: 'u32', to: 'i32' },
  popcount: { arity: 1, from: 'u32', to: 'i32' },
  floatBits: { arity: 1, from: 'f32', to: 'u32' },
  bitsFloat: { arity: 1, from: 'u32', to: 'f32' },
};

export function isMathFunction(name: string): boolean {
  const isRow = Object.hasOwn(BUILTINS, name) && !ABSENT_IN_MATH.includes(name);
  return isRow || Object.hasOwn(BIT_FUNCTIONS, `Math.${name}`) || name === 'fround';
}

/** Functions of the second parameter that return a value. */
export const THREAD_FUNCTIONS: readonly string[] = [
  'idiv',
  'min',
  'max',
  'clamp',
  'mix',
  'rsqrt',
  'fma',
  'popcount',
  'floatBits',
  'bitsFloat',
];
/** Rows that also work on vectors, component by component. */
export const VECTOR_ROWS: readonly string[] = ['min', 'max', 'clamp', 'mix'];
/** Functions that take only vectors (vector-functions.ts). */
export const VECTOR_FUNCTIONS: readonly string[] = ['add', 'sub', 'mul', 'scale', 'dot', 'cross', 'length', 'normalize'];
export const CASTS: readonly string[] = ['i32', 'u32', 'i64', 'u64', 'f32', 'f64'];
/** Element types by name. Those that are also casts can be called. */
export const TYPE_NAMES: readonly string[] = ['bool', 'i8', 'u8', 'i16', 'u16', 'f16', 'bf16', ...CASTS];
export const THREAD_VECTORS: readonly string[] = ['threadIdx', 'blockIdx', 'blockDim', 'gridDim', 'globalIdx'];
export const THREAD_INDICES: readonly string[] = ['i', 'j', 'k'];

/** Functions that declare memory (memory.ts). */
export const MEMORY_FUNCTIONS: readonly string[] = ['shared', 'sharedDynamic', 'local'];
/** The function that declares a random number generator (random.ts). */
export const RANDOM_FUNCTION = 'rng';
/** Size of the generator's state in 32-bit words: seed, sequence, the count of numbers drawn, and four numbers computed together. */
export const RANDOM_WORDS = 7;
/** Functions that must be statements (barriers-and-prints.ts). */
export const EFFECT_FUNCTIONS: readonly string[] = ['syncthreads', 'syncwarp', 'gridSync', 'threadfence', 'print', 'assert'];
