// Type rules: the common type of two operands, and the implicit conversions.
//
// Literals are untyped (bundlers rewrite `1`, `1.0` and `1e0` alike) and take the type of the operand they are combined with. Nothing
// narrows implicitly: a decimal never becomes an integer, nor f64 f32, nor i32 u32. 64-bit integers, JavaScript's bigint, combine only with
// each other.
import type { AnyNode } from 'acorn';
import type { DType } from '../../core/elements/dtype.js';
import { type Context, fail, type LocalName, textOf } from './context.js';
import type { ArithmeticOp, ComparisonOp, Expr, ScalarType, UntypedType, ValueType, Variable } from '../ir/ir.js';

const I32_MIN = -(2 ** 31);
const I32_MAX = 2 ** 31 - 1;
const U32_MAX = 2 ** 32 - 1;

/** The register type of an element or scalar argument. */
export const REGISTER_TYPE: { readonly [D in DType]: ScalarType } = {
  bool: 'bool',
  i8: 'i32',
  u8: 'i32',
  i16: 'i32',
  u16: 'i32',
  i32: 'i32',
  u32: 'u32',
  i64: 'i64',
  u64: 'u64',
  f16: 'f32',
  bf16: 'f32',
  f32: 'f32',
  f64: 'f64',
};

export function isUntyped(type: ValueType): type is UntypedType {
  return type === 'int literal' || type === 'float literal' || type === 'bigint literal';
}
/** Whether the type is a 32-bit integer. */
export function isInteger(type: ValueType): boolean {
  return type === 'i32' || type === 'u32' || type === 'int literal';
}
export function isFloat(type: ValueType): boolean {
  return type === 'f32' || type === 'f64' || type === 'float literal';
}

/** A literal number. */
export function literal(value: number): Expr {
  const isWhole = Number.isInteger(value) && value >= I32_MIN && value <= U32_MAX;
  return { kind: 'const', type: isWhole ? 'int literal' : 'float literal', value };
}
export function boolean(value: boolean): Expr {
  return { kind: 'const', type: 'bool', value: value ? 1 : 0 };
}
export function typedConst(type: ScalarType, value: number): Expr {
  return { kind: 'const', type, value };
}
export function variableExpr(variable: Variable): Expr {
  return { kind: 'variable', type: variable.type, variable };
}

/** Whether a value converts without a cast. */
export function convertsTo(from: ValueType, to: ScalarType): boolean {
  if (from === to) return true;
  if (from === 'bool' || to === 'bool') return false;
  if (isWide(from) || isWide(to)) return from === 'bigint literal' && isWide(to);
  if (from === 'int literal') return true;
  if (from === 'float literal' || isInteger(from)) return to === 'f32' || to === 'f64';
  return from === 'f32' && to === 'f64';
}

/** Converts a value to a type that `convertsTo` allows. Untyped expressions take the type recursively. */
export function retype(ctx: Context, expr: Expr, type: ScalarType, node: AnyNode): Expr {
  if (expr.type === type) return expr;
  if (!isUntyped(expr.type)) return { kind: 'cast', type, operand: expr };
  const down = (part: Expr): Expr => retype(ctx, part, type, node);
  switch (expr.kind) {
    case 'const':
      return constAs(expr.value, type, node);
    case 'wide':
      return wideAs(expr.value, type, node);
    case 'variable': {
      const declarator = ctx.untyped.get(expr.variable);
      if (declarator && (type === 'i32' || type === 'u32') && !ctx.met.has(declarator)) ctx.met.set(declarator, type);
      return { ...expr, type };
    }
    case 'select':
      return { ...expr, type, then: down(expr.then), otherwise: down(expr.otherwise) };
    case 'negate':
    case 'invert':
      return { ...expr, type, operand: down(expr.operand) };
    case 'arithmetic':
      return { ...expr, type, left: down(expr.left), right: down(expr.right) };
    case 'builtin':
      return { ...expr, type, args: expr.args.map(down) };
    case 'bind':
      return { ...expr, type, body: down(expr.body) };
    default:
      return { kind: 'cast', type, operand: expr };
  }
}

function constAs(value: number, type: ScalarType, node: AnyNode): Expr {
  if (type === 'f32') return typedConst(type, Math.fround(value));
  if ((type === 'i32' && value > I32_MAX) || (type === 'u32' && value < 0)) notFitting(value, type, node);
  return typedConst(type, value);
}

function notFitting(value: number, type: ScalarType, node: AnyNode): never {
  const hint =
    Math.abs(value) > U32_MAX
      ? `${type} has 32 bits. Write a larger number as f64(...), or as i64 with the suffix n.`
      : type === 'i32'
        ? 'The largest i32 is 2147483647. Use u32(...) for larger numbers.'
        : 'The smallest u32 is 0. Use i32(...) for negative numbers.';
  return fail('K206', node, `${value} does not fit ${type}.`, hint);
}

/** The cast that a hint suggests. For `a *= b` it casts the product. */
function castText(ctx: Context, type: ScalarType, node: AnyNode): string {
  if (node.type !== 'AssignmentExpression' || node.operator === '=') return `${type}(${textOf(ctx, node)})`;
  const target = textOf(ctx, node.left);
  return `${target} = ${type}(${target} ${node.operator.slice(0, -1)} ${textOf(ctx, node.right)})`;
}

/** Converts implicitly, as an assignment, argument or index does. */
export function convert(ctx: Context, expr: Expr, type: ScalarType, node: AnyNode): Expr {
  if (convertsTo(expr.type, type)) return retype(ctx, expr, type, node);
  const shown = `'${textOf(ctx, node)}'`;
  const cast = castText(ctx, type, node);
  if (expr.type === 'bool' || type === 'bool') {
    const hint = type === 'bool' ? `Compare it: ${textOf(ctx, node)} !== 0.` : `Write ${cast}, or choose with ?: .`;
    fail('K201', node, `${shown} is ${typeName(expr.type)} where ${type} is needed.`, hint);
  }
  if ((isInteger(expr.type) && isInteger(type)) || isWide(expr.type) || isWide(type)) {
    fail('K204', node, `${shown} is ${typeName(expr.type)} where ${type} is needed.`, `Write ${cast}.`);
  }
  if (expr.kind === 'const' && isInteger(type) && Number.isInteger(expr.value)) notFitting(expr.value, type, node);
  if (isFloat(expr.type) && isInteger(type)) {
    fail(
      'K206',
      node,
      `${shown} is ${typeName(expr.type)} where ${type} is needed, and would lose its fraction.`,
      `Write ${cast} to truncate.`,
    );
  }
  return fail('K207', node, `${shown} is f64 where f32 is needed, and would lose precision.`, `Write ${cast}.`);
}

/** The type of a value when nothing else decides it. */
export function defaultType(expr: Expr): ScalarType {
  if (!isUntyped(expr.type)) return expr.type;
  if (expr.type === 'float literal') return 'f32';
  if (expr.type === 'bigint literal') return defaultWide(expr);
  return expr.kind === 'const' && expr.value > I32_MAX ? 'u32' : 'i32';
}
/** Gives an untyped value its default type, but not while an untyped `let` may still decide it. */
export function settle(ctx: Context, expr: Expr, node: AnyNode): Expr {
  if (!isUntyped(expr.type) || isOpen(ctx, expr)) return expr;
  return retype(ctx, expr, defaultType(expr), node);
}

/** Whether a later pass may infer a type that this pass does not know. */
export function isOpen(ctx: Context, expr: Expr): boolean {
  return isUntyped(expr.type) && expr.kind !== 'const' && expr.kind !== 'wide' && ctx.untyped.size > 0;
}

export function typeName(type: ValueType): string {
  if (type === 'bigint literal') return 'a bigint';
  if (type === 'int literal') return 'a whole number';
  return type === 'float literal' ? 'a fraction' : type;
}

/** The type to which both numbers convert. */
export function commonType(ctx: Context, left: Expr, right: Expr, node: AnyNode): ValueType {
  const [a, b] = [left.type, right.type];
  if (a === 'bool' || b === 'bool') {
    fail('K201', node, `'${textOf(ctx, node)}' calculates with bool.`, 'Write i32(condition), or choose with ?: .');
  }
  if (a === b) return a;
  if (isWide(a) || isWide(b)) {
    if (isWide(a) && b === 'bigint literal') return a;
    if (isWide(b) && a === 'bigint literal') return b;
    const [wide, other] = isWide(a) ? [a, b] : [b, a];
    const cast = isUntyped(wide) ? 'i64' : wide;
    const hint = other === 'int literal' ? 'Write the number with the suffix n: 1n.' : `Cast one side: ${cast}(...).`;
    fail('K204', node, `'${textOf(ctx, node)}' mixes ${typeName(wide)} and ${typeName(other)}.`, hint);
  }
  if (isUntyped(a) && isUntyped(b)) return 'float literal';
  if (isUntyped(a)) return meetLiteral(a, b as ScalarType);
  if (isUntyped(b)) return meetLiteral(b, a);
  if (isInteger(a) && isInteger(b)) {
    fail('K204', node, `'${textOf(ctx, node)}' mixes ${a} and ${b}.`, 'Cast one side: i32(...) or u32(...).');
  }
  if (a === 'f64' || b === 'f64') return 'f64';
  return 'f32';
}

function meetLiteral(untyped: UntypedType, type: ScalarType): ScalarType {
  return untyped === 'float literal' && isInteger(type) ? 'f32' : type;
}

/** Converts to a common type, which may itself be untyped. */
export function meet(ctx: Context, expr: Expr, type: ValueType, node: AnyNode): Expr {
  if (!isUntyped(type)) return retype(ctx, expr, type, node);
  if (expr.kind === 'const') return { ...expr, type };
  return expr;
}

/** A condition: bool, or an integer that is compared with 0. `sign`: the comparison that a message advises, `===` for the operand of `!`. */
export function condition(ctx: Context, expr: Expr, node: AnyNode, sign: '!==' | '===' = '!=='): Expr {
  if (expr.type === 'bool') return expr;
  if (expr.kind === 'const') return boolean(expr.value !== 0);
  if (expr.kind === 'wide') return boolean(expr.value !== 0n);
  if (isFloat(expr.type))
    fail(
      'K201',
      node,
      `'${textOf(ctx, node)}' is ${typeName(expr.type)} where a condition is needed.`,
      `Compare it: ${textOf(ctx, node)} ${sign} 0.`,
    );
  if (isOpen(ctx, expr)) return { kind: 'compare', type: 'bool', op: '!=', left: expr, right: expr };
  const type = defaultType(expr);
  const none = type === 'i64' || type === 'u64' ? wideConst(type, 0n) : typedConst(type, 0);
  return { kind: 'compare', type: 'bool', op: '!=', left: retype(ctx, expr, type, node), right: none };
}

/** An untyped `let` takes the type of the first typed value assigned to it. */
export function learn(ctx: Context, local: LocalName, value: Expr, node: AnyNode): void {
  const now = ctx.resolved.get(local.node)?.type ?? local.variable.type;
  if (!isUntyped(now) || value.type === 'int literal' || value.type === now) return;
  ctx.resolved.set(local.node, { type: value.type, by: node });
  ctx.hasLearnt = true;
}

/** Converts a value to a variable's type; the error for an impossible conversion names the assignment that determined the type. */
export function converted(ctx: Context, local: LocalName, value: Expr, node: AnyNode): Expr {
  const { type, name } = local.variable;
  if (isUntyped(type)) return value;
  const by = ctx.resolved.get(local.node)?.by;
  if (by && !convertsTo(value.type, type) && by.start !== node.start) {
    const line = ctx.text.slice(0, by.start).split('\n').length;
    fail(
      'K203',
      node,
      `'${name}' is ${typeName(value.type)} here, but ${type} in '${textOf(ctx, by)}' (line ${line} of the function).`,
      `Cast one of the two, or initialize '${name}' with the wanted type: let ${name} = ${value.type === 'f64' ? 'f64' : 'f32'}(0).`,
    );
  }
  return convert(ctx, value, type, node);
}

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
