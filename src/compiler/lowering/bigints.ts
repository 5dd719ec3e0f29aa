// Lowers 64-bit integers, JavaScript's bigint. They combine only with each other, and `/` truncates, as in JavaScript.
import type { AnyNode } from 'acorn';
import { type Context, fail, textOf } from './context.js';
import type { ArithmeticOp, ComparisonOp, Expr, ScalarType, ValueType } from '../ir/ir.js';
import { commonType, isUntyped, retype, settle } from './types.js';

export function isWide(type: ValueType): boolean {
  return type === 'i64' || type === 'u64' || type === 'bigint literal';
}

/** A bigint literal, or a constant of a 64-bit type. */
export function wideConst(type: 'i64' | 'u64' | 'bigint literal', value: bigint): Expr {
  return { kind: 'wide', type, value };
}

/** Combines two operands, at least one of which is a 64-bit integer. */
export function combineWide(ctx: Context, op: string, comparison: ComparisonOp | undefined, left: Expr, right: Expr, node: AnyNode): Expr {
  const type = commonType(ctx, left, right, node);
  if (comparison) {
    const decided = isUntyped(type) ? 'i64' : type;
    return { kind: 'compare', type: 'bool', op: comparison, left: as(ctx, left, decided, node), right: as(ctx, right, decided, node) };
  }
  if (op === '/') return { kind: 'builtin', type, name: 'idiv', args: [as(ctx, left, type, node), as(ctx, right, type, node)] };
  if (!OPERATORS.includes(op)) {
    const hint = op === '**' ? 'Multiply.' : "'>>' of a u64 shifts in zeros.";
    fail('K301', node, `'${op}' does not work on 64-bit integers ('${textOf(ctx, node)}').`, hint);
  }
  return { kind: 'arithmetic', type, op: op as ArithmeticOp, left: as(ctx, left, type, node), right: as(ctx, right, type, node) };
}

const OPERATORS: readonly string[] = ['+', '-', '*', '%', '&', '|', '^', '<<', '>>'];

function as(ctx: Context, expr: Expr, type: ValueType, node: AnyNode): Expr {
  return isUntyped(type) ? expr : retype(ctx, expr, type, node);
}

/** `i64(x)`, `i32(big)`: a cast to or from 64 bits. Decimals saturate, integers wrap. */
export function castWide(ctx: Context, expr: Expr, type: ScalarType, node: AnyNode): Expr {
  if (type === 'i64' || type === 'u64') {
    if (expr.kind === 'const') return wideConst(type, truncated(type, expr.value));
    if (expr.kind === 'wide') return wideConst(type, wrapped(type, expr.value));
  }
  const from = settle(ctx, expr, node);
  if (from.type === type) return from;
  return { kind: 'cast', type, operand: from };
}

function wrapped(type: 'i64' | 'u64', value: bigint): bigint {
  return type === 'i64' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value);
}

/** A number literal: a value that fits in 32 bits wraps, as between i32 and u32. */
function truncated(type: 'i64' | 'u64', value: number): bigint {
  if (Number.isNaN(value)) return 0n;
  if (Number.isInteger(value) && Math.abs(value) <= 2 ** 32) return wrapped(type, BigInt(value));
  const [least, most] = LIMITS[type];
  if (value >= Number(most)) return most;
  return value <= Number(least) ? least : BigInt(Math.trunc(value));
}

const LIMITS = { i64: [-(2n ** 63n), 2n ** 63n - 1n], u64: [0n, 2n ** 64n - 1n] } as const;

/** A bigint literal as the given type. */
export function wideAs(value: bigint, type: ScalarType, node: AnyNode): Expr {
  if (type !== 'i64' && type !== 'u64') throw new Error(`A bigint became ${type}.`);
  const [least, most] = LIMITS[type];
  if (value < least || value > most) fail('K206', node, `${value} does not fit ${type}.`, `${type} ranges from ${least} to ${most}.`);
  return wideConst(type, value);
}

/** The type of a bigint when nothing else decides it. */
export function defaultWide(expr: Expr): 'i64' | 'u64' {
  return expr.kind === 'wide' && expr.value > LIMITS.i64[1] ? 'u64' : 'i64';
}
