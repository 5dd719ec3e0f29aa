// Lowers functions of vectors. Those that work component by component accept a number in place of a vector.
import type { CallExpression, Expression } from 'acorn';
import { argumentsOf } from './calls.js';
import { type Binding, type Context, fail, textOf, type Value, type VectorValue } from './context.js';
import { asExpr, evaluate } from './expressions.js';
import type { ArithmeticOp, Expr } from '../ir/ir.js';
import { convert, typedConst } from './types.js';
import { asVector, bound, inOrder, makeVector, repeatable, requireAlike, requireFloat, vectorName, withBinds } from './vectors.js';

const COMPONENTWISE: Readonly<Record<string, ArithmeticOp>> = { add: '+', sub: '-', mul: '*' };

/** A call of one of VECTOR_FUNCTIONS. */
export function lowerVectorFunction(ctx: Context, name: string, node: CallExpression): Value {
  const isUnary = name === 'length' || name === 'normalize';
  const nodes = argumentsOf(ctx, node, name, isUnary ? 1 : 2);
  const before = ctx.effects;
  const first = asVector(ctx, evaluate(ctx, nodes[0]!), nodes[0]!);
  if (isUnary) {
    requireFloat(ctx, first, name, nodes[0]!);
    return name === 'length' ? { kind: 'expr', expr: length(first) } : normalize(first);
  }
  if (name === 'scale') return scale(ctx, before, first, nodes[1]!);
  const second = asVector(ctx, evaluate(ctx, nodes[1]!), nodes[1]!);
  requireAlike(ctx, first, second, node);
  const [left, right] = [inOrder(ctx, before, first), inOrder(ctx, before, second)];
  if (name === 'dot') return { kind: 'expr', expr: withBinds([...left.binds, ...right.binds], dot(left.parts, right.parts)) };
  if (name === 'cross') return cross(ctx, left, right, node);
  const parts = left.parts.map((part, at) => arithmetic(COMPONENTWISE[name]!, part, right.parts[at]!));
  return makeVector(left.type, parts, [...left.binds, ...right.binds]);
}

function arithmetic(op: ArithmeticOp, left: Expr, right: Expr): Expr {
  return { kind: 'arithmetic', type: left.type, op, left, right };
}

/** Adds in the order of the components, because floating-point rounding depends on the order. */
function dot(left: readonly Expr[], right: readonly Expr[]): Expr {
  return left.map((part, at) => arithmetic('*', part, right[at]!)).reduce((sum, product) => arithmetic('+', sum, product));
}

function length(given: VectorValue): Expr {
  const { type, parts, binds } = repeatable(given);
  return withBinds(binds, { kind: 'builtin', type, name: 'sqrt', args: [dot(parts, parts)] });
}

/** A vector of length 0 stays zero, as in NVIDIA Warp. */
function normalize(given: VectorValue): VectorValue {
  const { type, parts, binds } = repeatable(given);
  if (type === 'bool') throw new Error('A vector of bool.');
  const all = [...binds];
  const whole = bound(all, 'length', { kind: 'builtin', type, name: 'sqrt', args: [dot(parts, parts)] });
  const isNone: Expr = { kind: 'compare', type: 'bool', op: '==', left: whole, right: typedConst(type, 0) };
  const inverse = arithmetic('/', typedConst(type, 1), whole);
  const factor = bound(all, 'factor', { kind: 'select', type, test: isNone, then: typedConst(type, 0), otherwise: inverse });
  return makeVector(
    type,
    parts.map((part) => arithmetic('*', part, factor)),
    all,
  );
}

function scale(ctx: Context, before: number, given: VectorValue, by: Expression): VectorValue {
  const value = convert(ctx, asExpr(ctx, evaluate(ctx, by), by), given.type, by);
  const vector = inOrder(ctx, before, given);
  const binds: Binding[] = [...vector.binds];
  const factor = bound(binds, 'factor', value);
  return makeVector(
    vector.type,
    vector.parts.map((part) => arithmetic('*', part, factor)),
    binds,
  );
}

function cross(ctx: Context, first: VectorValue, second: VectorValue, node: CallExpression): VectorValue {
  if (first.parts.length !== 3) {
    fail('K213', node, `'${textOf(ctx, node)}' has operands of type ${vectorName(first)}, but a cross product takes three components.`);
  }
  const left = repeatable(first, 'a');
  const right = repeatable(second, 'b');
  const minor = (j: number, k: number): Expr =>
    arithmetic('-', arithmetic('*', left.parts[j]!, right.parts[k]!), arithmetic('*', left.parts[k]!, right.parts[j]!));
  return makeVector(first.type, [minor(1, 2), minor(2, 0), minor(0, 1)], [...left.binds, ...right.binds]);
}

/** Applies a function of numbers to each component; undefined when no argument is a vector. */
export function lowerByComponent(
  ctx: Context,
  name: string,
  before: number,
  values: readonly Value[],
  nodes: readonly Expression[],
  node: CallExpression,
): VectorValue | undefined {
  const model = values.find((value) => value.kind === 'vector');
  if (!model) return undefined;
  const { type } = model;
  if (name === 'mix') requireFloat(ctx, model, name, node);
  const binds: Binding[] = [];
  const columns = values.map((value, at): readonly Expr[] => {
    if (value.kind === 'vector') {
      requireAlike(ctx, model, value, node);
      const vector = inOrder(ctx, before, value);
      binds.push(...vector.binds);
      return vector.parts;
    }
    const one = bound(binds, 'all', convert(ctx, asExpr(ctx, value, nodes[at]!), type, nodes[at]!));
    return model.parts.map(() => one);
  });
  const parts = model.parts.map((_part, at) =>
    rowOf(
      name,
      type,
      columns.map((column) => column[at]!),
    ),
  );
  return makeVector(type, parts, binds);
}

/** min and max of more than two arguments are applied pairwise. */
function rowOf(name: string, type: VectorValue['type'], args: readonly Expr[]): Expr {
  if (name !== 'min' && name !== 'max') return { kind: 'builtin', type, name, args };
  return args.reduce((left, right) => ({ kind: 'builtin', type, name, args: [left, right] }));
}
