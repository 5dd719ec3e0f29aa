// Spellings of operators and functions on SIMD vectors (the shim's simd.h and simd_math.h). Where there is none, the result is undefined
// and the scalar function is called lane by lane.
import { storageType } from '../emission/cpp-text.js';
import type { ArithmeticOp, ArrayRef, ComparisonOp, Expr, ScalarType, ValueType } from '../ir/ir.js';

const COMPARISONS: Readonly<Record<ComparisonOp, string>> = {
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  '==': 'eq',
  '!=': 'ne',
};

export function isWide(type: string): boolean {
  return type === 'i64' || type === 'u64' || type === 'f64';
}
function isFloat(type: ScalarType): boolean {
  return type === 'f32' || type === 'f64';
}

/** The vector type; for bool, a mask. */
export function simdType(type: ScalarType): string {
  return type === 'bool' ? 'mr_lane_mask' : `mr_${type}`;
}

/** The same value in all lanes. */
export function splat(type: ScalarType, text: string): string {
  return `${simdType(type)}_of(${text})`;
}

/** `mr_lt`, for example. */
export function comparisonName(op: ComparisonOp, prefix: string): string {
  return `${prefix}_${COMPARISONS[op]}`;
}

export function comparison(op: ComparisonOp, type: ScalarType, a: string, b: string): string {
  if (type !== 'bool') return `${comparisonName(op, 'mr')}(${a}, ${b})`;
  return op === '==' ? `(~(${a} ^ ${b}))` : `(${a} ^ ${b})`;
}

export function arithmetic(op: ArithmeticOp, type: ScalarType, a: string, b: string, right: Expr): string | undefined {
  switch (op) {
    case '%':
      if (isFloat(type) || isWide(type)) return undefined;
      return isPlainDivisor(right) ? `(${a} % ${b})` : `mr_remainder_of(${a}, ${b})`;
    case '<<':
    case '>>':
      return shift(op, type, a, b, right);
    case '/':
      return isFloat(type) ? `(${a} / ${b})` : undefined;
    default:
      return `(${a} ${op} ${b})`;
  }
}

function isPlainDivisor(right: Expr): boolean {
  return right.kind === 'const' && right.value !== 0 && right.value !== -1;
}

function shift(op: '<<' | '>>', type: ScalarType, a: string, b: string, right: Expr): string {
  const most = isWide(type) ? 63 : 31;
  const own = simdType(type);
  const unsigned = isWide(type) ? 'mr_u64' : 'mr_u32';
  // Signed left shifts are done on unsigned values, because C++ leaves some undefined.
  const of = op === '<<' && own !== unsigned ? unsigned : own;
  const count =
    right.kind === 'const' ? String(right.value & 31) : right.kind === 'wide' ? String(right.value & 63n) : `((${of})${b} & ${most})`;
  const shifted = `(${of === own ? '' : `(${of})`}${a} ${op} ${count})`;
  return of === own ? shifted : `((${own})${shifted})`;
}

/** Undefined when the cast is done lane by lane. */
export function cast(to: ScalarType, from: ScalarType, text: string): string | undefined {
  if (to === from) return text;
  if (to === 'bool') return `mr_ne(${text}, ${simdType(from)}{})`;
  if (from === 'bool') return to === 'i32' ? `mr_ones(${text})` : `__builtin_convertvector(mr_ones(${text}), ${simdType(to)})`;
  if (isFloat(from) && !isFloat(to)) return from === 'f32' && !isWide(to) ? `mr_to_${to}(${text})` : undefined;
  const isSameBits = !isFloat(from) && !isFloat(to) && isWide(from) === isWide(to);
  return isSameBits ? `((${simdType(to)})${text})` : `__builtin_convertvector(${text}, ${simdType(to)})`;
}

const ROUNDING: Readonly<Record<string, number>> = { floor: 1, ceil: 2, trunc: 3 };

/** Functions of f32 that the shim's float_functions.h computes without branches. */
const FLOAT_FUNCTIONS: ReadonlySet<string> = new Set(
  'exp expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh cbrt pow hypot'.split(' '),
);

/** Whether the SIMD form has instructions where one thread after the other has a branch or a call. */
export function isVectorFunction({ name, type }: { readonly name: string; readonly type: ValueType }): boolean {
  return type === 'f32' && FLOAT_FUNCTIONS.has(name);
}

/** Undefined when the function is called lane by lane. `args` are vectors. */
export function builtin(name: string, type: ScalarType, args: readonly string[], exprs: readonly Expr[]): string | undefined {
  const [a, b, c] = args as [string, string, string];
  if (isVectorFunction({ name, type })) return `mr_${name}f(${args.join(', ')})`;
  switch (name) {
    case 'idiv':
      if (isWide(type)) return undefined;
      return isPlainDivisor(exprs[1]!) ? `(${a} / ${b})` : `mr_divided(${a}, ${b})`;
    case 'floordiv':
      return `mr_floor_divided(${a}, ${b})`;
    case 'imul':
      return `((mr_i32)((mr_u32)${a} * (mr_u32)${b}))`;
    case 'abs':
      return type === 'u32' || type === 'u64' ? a : `mr_absolute(${a})`;
    case 'sign':
      return `mr_sign(${a})`;
    case 'min':
    case 'max':
      return `mr_${name}(${a}, ${b})`;
    case 'clamp':
      return `mr_min(mr_max(${a}, ${b}), ${c})`;
    case 'mix':
      return `(${a} + (${b} - ${a}) * ${c})`;
    case 'floor':
    case 'ceil':
    case 'trunc':
      return `mr_rounded_vector<${ROUNDING[name]}>(${a})`;
    case 'round':
      return `mr_to_nearest(${a})`;
    case 'wrapF32':
      return `mr_wrapped(${a})`;
    case 'sqrt':
      return `mr_sqrt(${a})`;
    case 'rsqrt':
      return `(${type === 'f32' ? '1.0f' : '1.0'} / mr_sqrt(${a}))`;
    case 'fma':
      return `mr_fma(${a}, ${b}, ${c})`;
    case 'floatBits':
      return `((mr_u32)${a})`;
    case 'bitsFloat':
      return `((mr_f32)${a})`;
    default:
      return undefined;
  }
}

/** Functions whose vector form repeats its arguments. */
export const TWICE: ReadonlySet<string> = new Set(['mix']);

/** Whether the array is interleaved by lane: in local memory, an element of all lanes is contiguous. */
export function isSimd(array: ArrayRef): boolean {
  return array.space === 'local';
}

/** `unsigned char name[8 * MR_WIDTH]` */
export function simdArray(array: ArrayRef, name: string, elements: number): string {
  return `__attribute__((aligned(64))) ${storageType(array.dtype)} ${name}[${elements} * MR_WIDTH];`;
}
