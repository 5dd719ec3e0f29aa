// Lowers calls of the language's own functions: rows of the builtin table, casts, and functions with special rules.
import type { CallExpression, Expression } from 'acorn';
import { isAtomic, lowerAtomic } from './atomics.js';
import {
  ABSENT_IN_MATH,
  BIT_FUNCTIONS,
  type Builtin,
  BUILTINS,
  CASTS,
  EFFECT_FUNCTIONS,
  MEMORY_FUNCTIONS,
  RANDOM_FUNCTION,
  TYPE_NAMES,
  VECTOR_FUNCTIONS,
  VECTOR_ROWS,
} from '../ir/builtins.js';
import { argumentsOf } from './calls.js';
import { type Context, fail, textOf, type Value } from './context.js';
import { asExpr, evaluate, integerQuotient, lowerExpr, lowerSettled } from './expressions.js';
import type { Expr, ScalarType, ValueType } from '../ir/ir.js';
import { misplaced } from './memory.js';
import { castTo, combine, divideIntegers } from './operators.js';
import { commonType, convert, isFloat, isInteger, isOpen, isUntyped, isWide, literal, meet, typeName } from './types.js';
import { lowerByComponent, lowerVectorFunction } from './vector-functions.js';
import { construct, isVectorType } from './vectors.js';

/** A function of the second parameter or of `Math`. */
export function lowerBuiltin(ctx: Context, name: string, node: CallExpression): Value {
  if (isVectorType(name)) return construct(ctx, name, node);
  if (VECTOR_FUNCTIONS.includes(name)) return lowerVectorFunction(ctx, name, node);
  const isMath = name.startsWith('Math.');
  const short = isMath ? name.slice('Math.'.length) : name;
  const isRow = Object.hasOwn(BUILTINS, short) && !(isMath && ABSENT_IN_MATH.includes(short));
  if (isRow && name !== 'Math.pow' && !Object.hasOwn(BIT_FUNCTIONS, name)) return lowerRow(ctx, short, name, BUILTINS[short]!, node);
  return { kind: 'expr', expr: lowerSpecial(ctx, short, name, node) };
}

/** Functions with special rules. */
function lowerSpecial(ctx: Context, short: string, name: string, node: CallExpression): Expr {
  if (isAtomic(name)) return lowerAtomic(ctx, name, node);
  if (CASTS.includes(name)) {
    const [argument] = argumentsOf(ctx, node, name, 1);
    return castTo(ctx, lowerExpr(ctx, argument!), name as ScalarType, argument!);
  }
  if (TYPE_NAMES.includes(name))
    return fail(
      'K302',
      node,
      `'${name}' is an element type and not a cast: registers hold no ${name} values.`,
      'Cast to i32, u32, f32 or f64.',
    );
  if (EFFECT_FUNCTIONS.includes(name)) return fail('K301', node, `'${name}' is used as a value.`, 'Write it as a statement of its own.');
  if (name === RANDOM_FUNCTION || MEMORY_FUNCTIONS.includes(name)) return misplaced(node, name);
  if (name === 'idiv') return lowerIdiv(ctx, node);
  if (name === 'Math.pow') {
    const [base, exponent] = argumentsOf(ctx, node, name, 2);
    return combine(ctx, '**', lowerExpr(ctx, base!), lowerExpr(ctx, exponent!), node, base!, exponent!);
  }
  if (name === 'Math.fround') {
    const [argument] = argumentsOf(ctx, node, name, 1);
    return castTo(ctx, lowerExpr(ctx, argument!), 'f32', argument!);
  }
  const bits = Object.hasOwn(BIT_FUNCTIONS, name) ? BIT_FUNCTIONS[name]! : undefined;
  if (!bits) return fail('K101', node.callee, `'${name}' is not part of the kernel language.`);
  const args = argumentsOf(ctx, node, name, bits.arity).map((argument) => bitArgument(ctx, name, bits.from, argument));
  return { kind: 'builtin', type: bits.to, name: short, args };
}

/** An argument of a bit function: an integer of the other signedness is reinterpreted; a float must be f32. */
function bitArgument(ctx: Context, name: string, type: ScalarType, argument: Expression): Expr {
  if (type === 'f32') return convert(ctx, lowerExpr(ctx, argument), 'f32', argument);
  const value = lowerSettled(ctx, argument);
  if (!isInteger(value.type))
    fail('K206', argument, `'${name}' takes integers, and '${textOf(ctx, argument)}' is ${typeName(value.type)}.`);
  return castTo(ctx, value, type, argument);
}

function lowerIdiv(ctx: Context, node: CallExpression): Expr {
  const args = argumentsOf(ctx, node, 'idiv', 2);
  const [left, right] = args.map((argument) => {
    const value = lowerExpr(ctx, argument);
    return isInteger(value.type)
      ? value
      : fail('K206', argument, `'idiv' divides integers, and '${textOf(ctx, argument)}' is ${typeName(value.type)}.`);
  });
  return divideIntegers(ctx, left!, right!, 'idiv', node);
}

function fold(short: string, row: Builtin, args: readonly Expr[]): Expr | undefined {
  const numbers = args.map((arg) => (arg.kind === 'const' && isUntyped(arg.type) ? arg.value : undefined));
  if (numbers.includes(undefined)) return undefined;
  const compute = row.fold ?? (Math as unknown as Record<string, (...values: number[]) => number>)[short];
  return compute && literal(compute(...(numbers as number[])));
}

function lowerRow(ctx: Context, short: string, name: string, row: Builtin, node: CallExpression): Value {
  if (row.rule === 'round') {
    const [only] = argumentsOf(ctx, node, name, 1);
    const rounding = short === 'trunc' ? 'idiv' : short === 'floor' ? 'floordiv' : undefined;
    const quotient = rounding && integerQuotient(ctx, only!, rounding);
    if (quotient) return { kind: 'expr', expr: quotient };
  }
  const many = row.arity === 'many';
  const nodes = argumentsOf(ctx, node, name, many ? 2 : row.arity, many ? Number.POSITIVE_INFINITY : row.arity);
  const before = ctx.effects;
  const values = nodes.map((argument) => evaluate(ctx, argument));
  const vector = VECTOR_ROWS.includes(name) ? lowerByComponent(ctx, short, before, values, nodes, node) : undefined;
  if (vector) return vector;
  const args = values.map((value, at) => asExpr(ctx, value, nodes[at]!));
  return { kind: 'expr', expr: fold(short, row, args) ?? applied(ctx, short, row, args, nodes, node) };
}

function isWideRow(row: Builtin): boolean {
  return row.cuda.u64 !== undefined;
}

/** Applies a row of the table to numbers. */
function applied(
  ctx: Context,
  short: string,
  row: Builtin,
  args: readonly Expr[],
  nodes: readonly Expression[],
  node: CallExpression,
): Expr {
  let type: ValueType = args[0]!.type;
  if (args.length === 1 && type === 'bool')
    fail('K201', nodes[0]!, `'${textOf(ctx, nodes[0]!)}' is bool where a number is needed.`, 'Write i32(condition).');
  for (const arg of args.slice(1)) type = commonType(ctx, { kind: 'const', type, value: 0 }, arg, node);
  if (isWide(type) && !(isWideRow(row) && args.length > 1)) {
    fail('K201', node, `'${textOf(ctx, node.callee)}' does not work on 64-bit integers.`, 'Cast to f64(...), or to i32(...).');
  }
  if (row.rule === 'round' && isInteger(type)) return args[0]!;
  if (row.rule !== 'number' && isUntyped(type) && args.some((arg) => isOpen(ctx, arg)))
    return { kind: 'builtin', type: 'float literal', name: short, args };
  if (row.rule === 'float' && !isFloat(type)) type = 'f32';
  if (row.rule !== 'number' && isUntyped(type)) type = 'f32';
  const met = args.map((arg, at) => meet(ctx, arg, type, nodes[at]!));
  if (row.arity !== 'many') return { kind: 'builtin', type, name: short, args: met };
  return met.reduce((left, right) => ({ kind: 'builtin', type, name: short, args: [left, right] }));
}
