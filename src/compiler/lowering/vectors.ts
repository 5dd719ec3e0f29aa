// Lowers vectors of two to four numbers. A vector becomes its components here, so later stages know only scalars.
//
// A component may be emitted at every use of the vector. So expensive components and those with side effects are bound to a name first:
// `binds` enclose every component that is used.
import type { AnyNode, CallExpression, Expression } from 'acorn';
import { argumentsOf } from './calls.js';
import { type Binding, type Context, fail, pinned, textOf, type Value, type VectorValue } from './context.js';
import { asExpr, elementType, evaluate, lowerFitted } from './expressions.js';
import { type Expr, isStable, type ScalarType, type Variable } from '../ir/ir.js';
import { castTo } from './operators.js';
import { convert, isInteger, typedConst, variableExpr } from './types.js';

export const COMPONENTS = ['x', 'y', 'z', 'w'] as const;
const SUFFIXES: Readonly<Record<string, ScalarType>> = { f: 'f32', d: 'f64', i: 'i32', u: 'u32' };
const NAME = /^vec([234])([fdiu])$/;

/** Whether the name is a vector type, such as `vec3f`; calling it constructs a vector. */
export function isVectorType(name: string): boolean {
  return NAME.test(name);
}
export function vectorName(vector: VectorValue): string {
  const suffix = Object.keys(SUFFIXES).find((key) => SUFFIXES[key] === vector.type);
  return `vec${vector.parts.length}${suffix}`;
}

export function makeVector(type: ScalarType, parts: readonly Expr[], binds: readonly Binding[]): VectorValue {
  return { kind: 'vector', type, parts, binds, variables: undefined };
}

/** Whether repeating the expression costs nothing. A variable keeps its value while one expression is evaluated. */
function isRepeatable(expr: Expr): boolean {
  return expr.kind === 'variable' || isStable(expr);
}

/** Binds a value to a name, unless it can be repeated as it is. */
export function bound(binds: Binding[], name: string, value: Expr): Expr {
  if (isRepeatable(value)) return value;
  const variable: Variable = { name, type: value.type, isConst: true };
  binds.push({ variable, value });
  return variableExpr(variable);
}

/** The same vector with components that can be repeated. */
export function repeatable(vector: VectorValue, name = 'v'): VectorValue {
  const binds = [...vector.binds];
  const parts = vector.parts.map((part, at) => bound(binds, `${name}_${COMPONENTS[at]}`, part));
  return { ...vector, parts, binds };
}

/**
 * A vector among the operands of one expression. If an operand has a side effect, all operands are bound in source order, so that a load
 * does not move behind an atomic that follows it.
 */
export function inOrder(ctx: Context, before: number, vector: VectorValue): VectorValue {
  return ctx.effects > before ? repeatable(vector) : vector;
}

/** Wraps a number computed from components in the bindings that they use. */
export function withBinds(binds: readonly Binding[], body: Expr): Expr {
  return binds.reduceRight<Expr>(
    (inside, { variable, value }) => ({ kind: 'bind', type: inside.type, variable, value, body: inside }),
    body,
  );
}

/** Lowers `v.x`. */
export function component(ctx: Context, vector: VectorValue, name: string, node: AnyNode): Expr {
  const part = vector.parts[(COMPONENTS as readonly string[]).indexOf(name)];
  if (part) return withBinds(vector.binds, part);
  const members = COMPONENTS.slice(0, vector.parts.length).join(', ');
  const hint = name === 'length' ? `Write length(v). The members are ${members}.` : `The members are ${members}.`;
  return fail('K101', node, `'${textOf(ctx, node)}' does not exist in a ${vectorName(vector)}.`, hint);
}

/** For statements: declares the bindings first, and stores components that cannot be repeated in variables `name_x` and so on. */
export function settled(
  ctx: Context,
  vector: VectorValue,
  name: string,
  at: number,
  isKept: (part: Expr, at: number) => boolean = isRepeatable,
): readonly Expr[] {
  for (const { variable, value } of vector.binds) ctx.out.push({ kind: 'declare', at, variable, value });
  return vector.parts.map((part, index) => (isKept(part, index) ? part : pinned(ctx, `${name}_${COMPONENTS[index]}`, part, at)));
}

/** Lowers `vec3f(x, y, z)`, `vec3f(all)`, `vec3f(row)` and `vec3f(otherVector)`. */
export function construct(ctx: Context, name: string, node: CallExpression): VectorValue {
  const match = NAME.exec(name)!;
  const length = Number(match[1]);
  const type = SUFFIXES[match[2]!]!;
  const args = argumentsOf(ctx, node, name, 1, length);
  if (args.length === 1) return constructFrom(ctx, name, length, type, evaluate(ctx, args[0]!), args[0]!);
  if (args.length !== length) fail('K212', node, `'${name}' takes ${length} arguments or one, not ${args.length}.`);
  const before = ctx.effects;
  const parts = args.map((argument) => lowerFitted(ctx, argument, (value, at) => convert(ctx, value, type, at)));
  return inOrder(ctx, before, makeVector(type, parts, []));
}

function constructFrom(ctx: Context, name: string, length: number, type: ScalarType, from: Value, node: Expression): VectorValue {
  if (from.kind === 'vector') {
    if (from.parts.length !== length)
      fail('K213', node, `'${textOf(ctx, node)}' is a ${vectorName(from)}, and ${name} has ${length} components.`);
    return { ...from, type, parts: from.parts.map((part) => castTo(ctx, part, type, node)), variables: undefined };
  }
  const binds: Binding[] = [];
  if (from.kind === 'array' && from.array.rank - from.indices.length === 1) {
    const { array } = from;
    const row = from.indices.map((index) => bound(binds, 'at', index));
    const parts = Array.from({ length }, (_unused, at): Expr => {
      const load: Expr = { kind: 'load', type: elementType(array), array, indices: [...row, typedConst('i32', at)] };
      return convert(ctx, load, type, node);
    });
    return makeVector(type, parts, binds);
  }
  const all = bound(binds, 'all', convert(ctx, asExpr(ctx, from, node), type, node));
  return makeVector(
    type,
    Array.from({ length }, () => all),
    binds,
  );
}

/** Lowers `test ? v : w`. Each component repeats the bindings of its arm, so an arm must have no side effects. */
export function select(ctx: Context, given: Expr, then: VectorValue, otherwise: VectorValue, node: AnyNode): VectorValue {
  requireAlike(ctx, then, otherwise, node);
  if (given.kind === 'const') return given.value === 0 ? otherwise : then;
  const binds: Binding[] = [];
  const test = bound(binds, 'test', given);
  const arm = ({ binds: own, parts }: VectorValue, at: number): Expr => withBinds(own, parts[at]!);
  const { type } = then;
  const parts = then.parts.map((_part, at): Expr => ({ kind: 'select', type, test, then: arm(then, at), otherwise: arm(otherwise, at) }));
  return makeVector(type, parts, binds);
}

export function asVector(ctx: Context, value: Value, node: AnyNode): VectorValue {
  if (value.kind === 'vector') return value;
  const isNumber = value.kind === 'expr' || value.kind === 'local' || (value.kind === 'array' && value.indices.length === value.array.rank);
  const what = isNumber ? 'a number' : value.kind === 'array' ? 'an array' : 'not a value';
  return fail(
    'K213',
    node,
    `'${textOf(ctx, node)}' is ${what} where a vector is needed.`,
    'Make one: vec3f(x, y, z), or vec3f(row) of an array.',
  );
}

export function requireAlike(ctx: Context, left: VectorValue, right: VectorValue, node: AnyNode): void {
  if (left.type === right.type && left.parts.length === right.parts.length) return;
  const hint = left.parts.length === right.parts.length ? `Convert one: ${vectorName(left)}(...).` : undefined;
  fail('K213', node, `'${textOf(ctx, node)}' mixes ${vectorName(left)} and ${vectorName(right)}.`, hint);
}

export function requireFloat(ctx: Context, vector: VectorValue, what: string, node: AnyNode): void {
  if (isInteger(vector.type)) {
    fail(
      'K213',
      node,
      `'${what}' takes vectors of f32 or f64, and '${textOf(ctx, node)}' is a ${vectorName(vector)}.`,
      'Convert it: vec3f(...).',
    );
  }
}
