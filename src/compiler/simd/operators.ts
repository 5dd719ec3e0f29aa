// The spelling of operators and functions on vectors of lanes (simd.h and simd_math.h of the shim). Undefined where there
// is none: then the scalar one is called lane by lane.
import { storageType } from '../emission/cpp-text.js';
import type { ArithmeticOp, ArrayRef, ComparisonOp, Expr, ScalarType } from '../ir/ir.js';

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

/** A vector's type; of bool it is a mask. */
export function simdType(type: ScalarType): string {
  return type === 'bool' ? 'mr_lane_mask' : `mr_${type}`;
}

/** The same in all lanes. */
export function splat(type: ScalarType, text: string): string {
  return `${simdType(type)}_of(${text})`;
}

/** `mr_lt` */
export function comparisonName(op: ComparisonOp, family: string): string {
  return `${family}_${COMPARISONS[op]}`;
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
  // A signed shift to the left is done on bits.
  const of = op === '<<' && own !== unsigned ? unsigned : own;
  const count =
    right.kind === 'const' ? String(right.value & 31) : right.kind === 'wide' ? String(right.value & 63n) : `((${of})${b} & ${most})`;
  const shifted = `(${of === own ? '' : `(${of})`}${a} ${op} ${count})`;
  return of === own ? shifted : `((${own})${shifted})`;
}

/** Undefined: lane by lane. */
export function cast(to: ScalarType, from: ScalarType, text: string): string | undefined {
  if (to === from) return text;
  if (to === 'bool') return `mr_ne(${text}, ${simdType(from)}{})`;
  if (from === 'bool') return to === 'i32' ? `mr_ones(${text})` : `__builtin_convertvector(mr_ones(${text}), ${simdType(to)})`;
  if (isFloat(from) && !isFloat(to)) return from === 'f32' && !isWide(to) ? `mr_to_${to}(${text})` : undefined;
  const isSameBits = !isFloat(from) && !isFloat(to) && isWide(from) === isWide(to);
  return isSameBits ? `((${simdType(to)})${text})` : `__builtin_convertvector(${text}, ${simdType(to)})`;
}

const ROUNDING: Readonly<Record<string, number>> = { floor: 1, ceil: 2, trunc: 3 };

/** Undefined: lane by lane. `args` are vectors. */
export function builtin(name: string, type: ScalarType, args: readonly string[], exprs: readonly Expr[]): string | undefined {
  const [a, b, c] = args as [string, string, string];
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
      return `mr_rounded_vector<1>(${a} + ${type === 'f32' ? '0.5f' : '0.5'})`;
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

/** Those whose vector form wants its arguments twice. */
export const TWICE: ReadonlySet<string> = new Set(['mix']);

/** Elements of a lane's own memory stand apart: those of its neighbours lie between. */
export function isSimd(array: ArrayRef): boolean {
  return array.space === 'local';
}

/** `unsigned char name[8 * MR_WIDTH]` */
export function simdArray(array: ArrayRef, name: string, elements: number): string {
  return `__attribute__((aligned(64))) ${storageType(array.dtype)} ${name}[${elements} * MR_WIDTH];`;
}
