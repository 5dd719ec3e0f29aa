// Lowers operators: common types, constant folding, and errors.
import type { AnyNode } from 'acorn';
import { type Context, fail, textOf } from './context.js';
import type { ArithmeticOp, ComparisonOp, Expr, ScalarType } from '../ir/ir.js';
import {
  boolean,
  castWide,
  combineWide,
  commonType,
  convert,
  defaultType,
  isFloat,
  isInteger,
  isOpen,
  isUntyped,
  isWide,
  literal,
  meet,
  retype,
  settle,
  typedConst,
  typeName,
  variableExpr,
} from './types.js';

/** Fails unless the operand is an integer. */
export function integer(ctx: Context, operand: Expr, node: AnyNode, op: string): Expr {
  if (isInteger(operand.type)) return operand;
  const hint = operand.type === 'bool' ? 'Use && and || on conditions.' : `Write (${textOf(ctx, node)} | 0), which wraps as in JavaScript.`;
  return fail('K201', node, `'${op}' needs integers, and '${textOf(ctx, node)}' is ${typeName(operand.type)}.`, hint);
}

const COMPARISONS: Readonly<Record<string, ComparisonOp>> = {
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
  '==': '==',
  '===': '==',
  '!=': '!=',
  '!==': '!=',
};
const BITWISE: readonly string[] = ['&', '|', '^', '<<', '>>', '>>>'];

export function divideIntegers(ctx: Context, left: Expr, right: Expr, rounding: 'idiv' | 'floordiv', node: AnyNode): Expr {
  const type = commonType(ctx, left, right, node);
  if (left.kind === 'const' && right.kind === 'const' && isUntyped(type)) {
    const quotient = left.value / right.value;
    return literal(Number.isFinite(quotient) ? (rounding === 'idiv' ? Math.trunc(quotient) : Math.floor(quotient)) : 0);
  }
  if (isUntyped(type) && (isOpen(ctx, left) || isOpen(ctx, right))) return { kind: 'builtin', type, name: rounding, args: [left, right] };
  const decided = isUntyped(type) ? 'i32' : type;
  const args = [retype(ctx, left, decided, node), retype(ctx, right, decided, node)];
  return { kind: 'builtin', type: decided, name: rounding === 'floordiv' && decided === 'u32' ? 'idiv' : rounding, args };
}

/** Applies a binary operator to two values; `a + b` and `a += b` share it. */
export function combine(ctx: Context, op: string, left: Expr, right: Expr, node: AnyNode, leftNode: AnyNode, rightNode: AnyNode): Expr {
  const comparison = COMPARISONS[op];
  if (isWide(left.type) || isWide(right.type)) return combineWide(ctx, op, comparison, left, right, node);
  if (comparison) return compare(ctx, comparison, left, right, node);
  if (BITWISE.includes(op)) return bitwise(ctx, op, left, right, leftNode, rightNode);
  const type = commonType(ctx, left, right, node);
  if (isUntyped(type) && left.kind === 'const' && right.kind === 'const') return literal(folded(op, left.value, right.value));
  if (op === '**') return power(ctx, left, right, type, node);
  if (op === '/' && isInteger(type) && !isUntyped(type)) {
    const [a, b] = [textOf(ctx, leftNode), textOf(ctx, rightNode)];
    fail(
      'K205',
      node,
      "'/' on two integers is ambiguous: JavaScript gives a fraction, CUDA truncates.",
      `Write idiv(${a}, ${b}) to truncate or f32(${a}) / ${b} for a fraction.`,
    );
  }
  if (!['+', '-', '*', '/', '%'].includes(op)) fail('K301', node, `'${op}' is not part of the kernel language.`);
  const result = op === '/' && isUntyped(type) ? 'float literal' : type;
  return {
    kind: 'arithmetic',
    type: result,
    op: op as ArithmeticOp,
    left: meet(ctx, left, type, leftNode),
    right: meet(ctx, right, type, rightNode),
  };
}

function folded(op: string, a: number, b: number): number {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '%':
      return a % b;
    default:
      return a ** b;
  }
}

function compare(ctx: Context, op: ComparisonOp, left: Expr, right: Expr, node: AnyNode): Expr {
  const isEquality = op === '==' || op === '!=';
  if (left.type === 'bool' && right.type === 'bool' && isEquality) return { kind: 'compare', type: 'bool', op, left, right };
  const type = commonType(ctx, left, right, node);
  const decided = isUntyped(type) ? (type === 'float literal' ? 'f32' : 'i32') : type;
  if (left.kind === 'const' && right.kind === 'const' && isUntyped(type)) return boolean(compared(op, left.value, right.value));
  if (isUntyped(type) && (isOpen(ctx, left) || isOpen(ctx, right))) return { kind: 'compare', type: 'bool', op, left, right };
  return { kind: 'compare', type: 'bool', op, left: retype(ctx, left, decided, node), right: retype(ctx, right, decided, node) };
}

function compared(op: ComparisonOp, a: number, b: number): boolean {
  if (op === '<') return a < b;
  if (op === '<=') return a <= b;
  if (op === '>') return a > b;
  if (op === '>=') return a >= b;
  return op === '==' ? a === b : a !== b;
}

function bitwise(ctx: Context, op: string, left: Expr, right: Expr, leftNode: AnyNode, rightNode: AnyNode): Expr {
  // `x | 0` and `x >>> 0` are JavaScript's casts.
  if (right.kind === 'const' && right.value === 0 && left.type !== 'bool') {
    if (op === '|') return wrapTo(ctx, left, 'i32', leftNode);
    if (op === '>>>') return wrapTo(ctx, left, 'u32', leftNode);
  }
  integer(ctx, left, leftNode, op);
  integer(ctx, right, rightNode, op);
  if (left.kind === 'const' && right.kind === 'const' && isUntyped(left.type) && isUntyped(right.type)) {
    return literal(foldedBits(op, left.value, right.value));
  }
  if (op === '<<' || op === '>>' || op === '>>>') {
    const count = isUntyped(right.type) && !isOpen(ctx, right) ? wrapped(ctx, right, 'i32', rightNode) : right;
    // `>>>` is a cast to u32 like `k >>> 0`, and so does not infer u32 for an untyped variable.
    if (op === '>>>') {
      const value = left.kind === 'const' ? wrapped(ctx, left, 'u32', leftNode) : left;
      return { kind: 'arithmetic', type: 'u32', op: '>>', left: castTo(ctx, value, 'u32', leftNode), right: count };
    }
    if (isUntyped(left.type) && left.kind !== 'const') return { kind: 'arithmetic', type: left.type, op, left, right: count };
    const value = isUntyped(left.type) ? wrapped(ctx, left, defaultType(left), leftNode) : left;
    return { kind: 'arithmetic', type: value.type, op, left: value, right: count };
  }
  const type = isUntyped(left.type) ? right.type : left.type;
  if (!isUntyped(left.type) && !isUntyped(right.type)) commonType(ctx, left, right, leftNode);
  return {
    kind: 'arithmetic',
    type,
    op: op as ArithmeticOp,
    left: wrapped(ctx, left, type, leftNode),
    right: wrapped(ctx, right, type, rightNode),
  };
}

/** A literal reduced to 32 bits, so that `x & 0xffffffff` is in range. */
function wrapped(ctx: Context, expr: Expr, type: Expr['type'], node: AnyNode): Expr {
  if (isUntyped(type)) return expr;
  if (expr.kind !== 'const' || !isUntyped(expr.type)) return retype(ctx, expr, type, node);
  return typedConst(type, type === 'u32' ? expr.value >>> 0 : expr.value | 0);
}

function foldedBits(op: string, a: number, b: number): number {
  switch (op) {
    case '&':
      return a & b;
    case '|':
      return a | b;
    case '^':
      return a ^ b;
    case '<<':
      return a << b;
    case '>>':
      return a >> b;
    default:
      return a >>> b;
  }
}

/** Integer powers up to this exponent become multiplications. */
const EXPANDED_POWER = 4;

function power(ctx: Context, base: Expr, exponent: Expr, type: Expr['type'], node: AnyNode): Expr {
  const times = exponent.kind === 'const' ? exponent.value : Number.NaN;
  if (Number.isInteger(times) && times >= 1 && times <= EXPANDED_POWER) {
    const settled = settle(ctx, base, node);
    if (times === 1) return settled;
    const variable = { name: 'base', type: settled.type, isConst: true };
    const factor = variableExpr(variable);
    let body: Expr = factor;
    for (let n = 1; n < times; n++) body = { kind: 'arithmetic', type: settled.type, op: '*', left: body, right: factor };
    return { kind: 'bind', type: settled.type, variable, value: settled, body };
  }
  if (isUntyped(type) && (isOpen(ctx, base) || isOpen(ctx, exponent)))
    return { kind: 'builtin', type: 'float literal', name: 'pow', args: [base, exponent] };
  const float = type === 'f64' ? 'f64' : 'f32';
  return { kind: 'builtin', type: float, name: 'pow', args: [retype(ctx, base, float, node), retype(ctx, exponent, float, node)] };
}

/** Lowers `x | 0` and `x >>> 0`: a float wraps modulo 2^32, as in JavaScript. */
export function wrapTo(ctx: Context, expr: Expr, type: 'i32' | 'u32', node: AnyNode): Expr {
  if (isOpen(ctx, expr) || isWide(expr.type) || !isFloat(expr.type)) return castTo(ctx, expr, type, node);
  if (expr.kind === 'const') return typedConst(type, type === 'i32' ? expr.value | 0 : expr.value >>> 0);
  const settled = settle(ctx, expr, node);
  const name = settled.type === 'f64' ? 'wrapF64' : 'wrapF32';
  return castTo(ctx, { kind: 'builtin', type: 'i32', name, args: [settled] }, type, node);
}

/** Lowers an explicit cast: i32(x), Math.fround(x). */
export function castTo(ctx: Context, expr: Expr, type: ScalarType, node: AnyNode): Expr {
  // A cast does not decide the type of an untyped variable.
  if (isOpen(ctx, expr)) return { kind: 'cast', type, operand: expr };
  if (isWide(expr.type) || isWide(type)) return castWide(ctx, expr, type, node);
  if (expr.kind === 'const' && isUntyped(expr.type)) return typedConst(type, castNumber(expr.value, type));
  if (expr.kind === 'const' && expr.type === 'bool') return typedConst(type, expr.value);
  if (isUntyped(expr.type) && !(isFloat(expr.type) && isInteger(type))) return convert(ctx, expr, type, node);
  const settled = settle(ctx, expr, node);
  return settled.type === type ? settled : { kind: 'cast', type, operand: settled };
}

function castNumber(value: number, type: ScalarType): number {
  if (type === 'f32') return Math.fround(value);
  if (type === 'f64') return value;
  if (Number.isNaN(value)) return 0;
  // An integer literal wraps between i32 and u32, like a cast at run time; a decimal saturates.
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 32) return type === 'i32' ? value | 0 : value >>> 0;
  const [low, high] = type === 'i32' ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  return Math.trunc(Math.min(Math.max(value, low), high));
}
