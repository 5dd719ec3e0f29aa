// Lowers expressions that are statements: assignments to variables, to elements and rows of arrays, and to vectors; calls; and what stands
// before a comma.
import type { AnyNode, AssignmentExpression, CallExpression, Expression, Pattern, UpdateExpression } from 'acorn';
import { lowerEffectCall } from './barriers-and-prints.js';
import { argumentsOf, lowerCall } from './calls.js';
import { alternatives, type Context, fail, type LocalName, nested, perhaps, pinned, textOf, type VectorValue } from './context.js';
import { elementType, evaluate, lowerExpr, lowerFitted, lowerIndex, NO_VALUE } from './expressions.js';
import { EFFECT_FUNCTIONS } from '../ir/builtins.js';
import { type ArrayRef, type Expr, isStable, type ScalarType } from '../ir/ir.js';
import { combine } from './operators.js';
import { mentions } from '../analysis/region-plan.js';
import {
  condition,
  convert,
  converted,
  convertsTo,
  isFloat,
  isUntyped,
  isWide,
  learn,
  literal,
  retype,
  settle,
  typedConst,
  variableExpr,
  wideConst,
} from './types.js';
import { asVector, requireAlike, settled, vectorName } from './vectors.js';

/** `array.set(i, j, value)`, or `array.set(i, vector)`, which writes the components along the last dimension. */
export function lowerSet(ctx: Context, array: ArrayRef, given: readonly Expr[], node: CallExpression): void {
  const left = array.rank - given.length;
  const last = node.arguments.at(-1);
  const value = last && last.type !== 'SpreadElement' ? evaluate(ctx, last) : undefined;
  const args = argumentsOf(ctx, node, `${array.name}.set`, value?.kind === 'vector' ? left : left + 1);
  const indices = [...given, ...args.slice(0, -1).map((argument) => lowerIndex(ctx, argument))];
  const valueNode = args.at(-1)!;
  if (value?.kind === 'vector') storeVector(ctx, array, indices, value, valueNode, node);
  else
    store(
      ctx,
      array,
      indices,
      lowerFitted(ctx, valueNode, (arm, at) => convert(ctx, arm, elementType(array), at)),
      valueNode,
      node,
    );
}

/** Computes all components before it writes the first, because the value may read the row that it writes. */
function storeVector(ctx: Context, array: ArrayRef, row: readonly Expr[], value: VectorValue, valueNode: AnyNode, node: AnyNode): void {
  const type = elementType(array);
  if (!convertsTo(value.type, type)) {
    fail(
      'K213',
      valueNode,
      `'${textOf(ctx, valueNode)}' is a ${vectorName(value)}, and '${array.name}' holds ${array.dtype}.`,
      'Convert it: vec3i(...).',
    );
  }
  const indices = row.map((index) => (isStable(index) ? index : pinned(ctx, 'at', index, node.start)));
  settled(ctx, value, 'part', node.start).forEach((part, at) => {
    store(ctx, array, [...indices, typedConst('i32', at)], part, valueNode, node);
  });
}

type Target =
  | { readonly kind: 'vector'; readonly vector: VectorValue }
  | { readonly kind: 'local'; readonly local: LocalName }
  | { readonly kind: 'element'; readonly array: ArrayRef; readonly indices: readonly Expr[] };

function targetOf(ctx: Context, node: Expression | Pattern): Target {
  if (node.type !== 'Identifier' && node.type !== 'MemberExpression') fail('K301', node, `'${textOf(ctx, node)}' cannot be assigned to.`);
  const value = evaluate(ctx, node);
  if (node.type === 'MemberExpression' && node.object.type !== 'Super' && evaluate(ctx, node.object).kind === 'vector') {
    fail('K104', node, `'${textOf(ctx, node)}' cannot be assigned to: a vector is a value.`, 'Assign a new vector: v = vec2f(2, v.y).');
  }
  if (value.kind === 'array') {
    if (value.indices.length === value.array.rank) return { kind: 'element', array: value.array, indices: value.indices };
    fail('K210', node, `'${textOf(ctx, node)}' is an array, not an element of one.`, 'Index every dimension.');
  }
  if (value.kind === 'vector' && value.variables) return { kind: 'vector', vector: value };
  if (value.kind === 'local' && !value.variable.isConst) return { kind: 'local', local: value };
  return fail('K104', node, `'${textOf(ctx, node)}' cannot be assigned to: it is a constant or a parameter.`, 'Copy it into a let first.');
}

export function lowerAssignment(ctx: Context, node: AssignmentExpression): void {
  if (node.right.type === 'AssignmentExpression' && node.operator === '=') return lowerChain(ctx, node, node.right);
  const target = targetOf(ctx, node.left);
  if (node.operator === '=') {
    if (target.kind === 'vector') {
      const value = leading(ctx, node.right, (last) => asVector(ctx, evaluate(ctx, last), last));
      assignVector(ctx, target.vector, value, node);
      return;
    }
    const value = leading(ctx, node.right, (last) => lowerFitted(ctx, last, (arm, at) => fitted(ctx, target, arm, at)));
    assign(ctx, target, value, node.right, node);
    return;
  }
  const op = node.operator.slice(0, -1);
  if (op === '&&' || op === '||' || op === '??')
    fail('K301', node, `'${node.operator}' is not part of the kernel language.`, 'Write an if.');
  const isPlain = ['+', '-', '*', '/', '%'].includes(op);
  const value = isPlain ? lowerFitted(ctx, node.right, (arm, at) => met(ctx, target, arm, at)) : lowerExpr(ctx, node.right);
  change(ctx, target, op, value, node, node.left, node.right);
}

type NumberTarget = Exclude<Target, { kind: 'vector' }>;

/** The target's type; undefined while a `let` has none. */
function typeOf(target: Target): ScalarType | undefined {
  if (target.kind === 'element') return elementType(target.array);
  const { type } = target.kind === 'local' ? target.local.variable : target.vector;
  return isUntyped(type) ? undefined : type;
}

function fitted(ctx: Context, target: NumberTarget, value: Expr, node: AnyNode): Expr {
  if (target.kind === 'local') return converted(ctx, target.local, value, node);
  return convert(ctx, value, elementType(target.array), node);
}

/** Converts the right side of floating-point `target op= value`. Integers and conversions that would narrow are left to the operator. */
function met(ctx: Context, target: Target, value: Expr, node: AnyNode): Expr {
  const type = typeOf(target);
  return type !== undefined && isFloat(type) && convertsTo(value.type, type) ? retype(ctx, value, type, node) : value;
}

/** `a = b = value`. */
function lowerChain(ctx: Context, node: AssignmentExpression, right: AssignmentExpression): void {
  lowerAssignment(ctx, right);
  const value = evaluate(ctx, right.left as Expression);
  const target = targetOf(ctx, node.left);
  if (value.kind !== 'local' || target.kind === 'vector')
    fail('K301', right, `'${textOf(ctx, right)}' is used as a value.`, 'Write it as a statement of its own.');
  assign(ctx, target, variableExpr(value.variable), right, node);
}

export function lowerUpdate(ctx: Context, node: UpdateExpression): void {
  const target = targetOf(ctx, node.argument);
  const type =
    target.kind === 'local' ? target.local.variable.type : target.kind === 'element' ? elementType(target.array) : target.vector.type;
  const one = isWide(type) ? wideConst('bigint literal', 1n) : literal(1);
  change(ctx, target, node.operator === '++' ? '+' : '-', one, node, node.argument, node.argument);
}

/** Computes all components before it writes the first: `v = cross(v, w)`. */
function assignVector(ctx: Context, target: VectorValue, value: VectorValue, node: AssignmentExpression): void {
  requireAlike(ctx, target, value, node);
  const { list: variables, node: declarator } = target.variables!;
  ctx.assigned.add(declarator);
  // A component that reads an already written one needs a temporary.
  const isKept = (part: Expr, at: number): boolean => !mentions(part, new Set(variables.slice(0, at)));
  const parts = settled(ctx, value, 'next', node.start, isKept);
  variables.forEach((variable, at) => {
    ctx.out.push({ kind: 'assign', at: node.start, variable, value: parts[at]! });
  });
}

/** `target op= value`; an element's indices are evaluated once. */
function change(ctx: Context, target: Target, op: string, value: Expr, node: AnyNode, leftNode: AnyNode, rightNode: AnyNode): void {
  if (target.kind === 'local') {
    if (!target.local.hasValue) fail('K208', leftNode, `'${textOf(ctx, leftNode)}' is read before a value was assigned to it.`, NO_VALUE);
    const result = combine(ctx, op, variableExpr(target.local.variable), value, node, leftNode, rightNode);
    assign(ctx, target, result, node, node);
    return;
  }
  if (target.kind === 'vector') {
    const hint = 'Write v = add(v, w).';
    return fail('K213', node, `'${textOf(ctx, node)}': vectors have no operators.`, hint);
  }
  const { array } = target;
  const indices = target.indices.map((index) => (isStable(index) ? index : pinned(ctx, 'at', index, node.start)));
  const load: Expr = { kind: 'load', type: elementType(array), array, indices };
  store(ctx, array, indices, combine(ctx, op, load, value, node, leftNode, rightNode), node, node);
}

function assign(ctx: Context, target: NumberTarget, value: Expr, valueNode: AnyNode, node: AnyNode): void {
  if (target.kind === 'element') {
    store(ctx, target.array, target.indices, value, valueNode, node);
    return;
  }
  const { local } = target;
  learn(ctx, local, value, node);
  ctx.assigned.add(local.node);
  local.hasValue = true;
  ctx.empty.delete(local);
  const known = converted(ctx, local, value, valueNode);
  ctx.out.push({ kind: 'assign', at: node.start, variable: local.variable, value: known });
}

function store(ctx: Context, array: ArrayRef, indices: readonly Expr[], value: Expr, valueNode: AnyNode, node: AnyNode): void {
  if (array.isReadOnly)
    fail('K211', node, `'${array.name}' is an input, which a kernel only reads.`, 'Declare it as output(...) or inout(...).');
  ctx.out.push({ kind: 'store', at: node.start, array, indices, value: convert(ctx, value, elementType(array), valueNode) });
}

/** `a, b, value`: lowers the expressions before the last comma as statements. */
export function leading<T>(ctx: Context, node: Expression, last: (node: Expression) => T): T {
  if (node.type !== 'SequenceExpression') return last(node);
  for (const part of node.expressions.slice(0, -1)) lowerEffect(ctx, part);
  return leading(ctx, node.expressions.at(-1)!, last);
}

export function lowerCondition(ctx: Context, node: Expression): Expr {
  return condition(ctx, lowerExpr(ctx, node), node);
}

export function lowerTest(ctx: Context, node: Expression): Expr {
  return leading(ctx, node, (last) => lowerCondition(ctx, last));
}

/** Lowers an expression that is a statement. */
export function lowerEffect(ctx: Context, node: Expression): void {
  switch (node.type) {
    case 'AssignmentExpression':
      return lowerAssignment(ctx, node);
    case 'UpdateExpression':
      return lowerUpdate(ctx, node);
    case 'SequenceExpression':
      for (const part of node.expressions) lowerEffect(ctx, part);
      return;
    case 'ParenthesizedExpression':
      return lowerEffect(ctx, node.expression);
    case 'LogicalExpression': {
      // Minifiers turn an `if` into `a && f()`.
      const test = lowerTest(ctx, node.left);
      const effect = perhaps(ctx, () => nested(ctx, () => lowerEffect(ctx, node.right)));
      const [then, otherwise] = node.operator === '&&' ? [effect, []] : [[], effect];
      ctx.out.push({ kind: 'if', at: node.start, test, then, otherwise });
      return;
    }
    case 'ConditionalExpression': {
      const test = lowerTest(ctx, node.test);
      const arms = [node.consequent, node.alternate].map((arm) => () => nested(ctx, () => lowerEffect(ctx, arm)));
      const [then, otherwise] = alternatives(ctx, arms);
      ctx.out.push({ kind: 'if', at: node.start, test, then: then!, otherwise: otherwise! });
      return;
    }
    case 'CallExpression':
      return lowerCallEffect(ctx, node);
    case 'UnaryExpression':
      if (node.operator === 'void') return lowerEffect(ctx, node.argument);
      break;
    case 'Literal':
      return;
    default:
  }
  fail('K301', node, `'${textOf(ctx, node)}' does nothing.`, 'Assign it, or remove it.');
}

function lowerCallEffect(ctx: Context, node: CallExpression): void {
  const callee = evaluate(ctx, node.callee);
  if (callee.kind === 'method' && callee.name === 'set') {
    lowerSet(ctx, callee.array, callee.indices, node);
    return;
  }
  if (callee.kind === 'builtin' && EFFECT_FUNCTIONS.includes(callee.name)) {
    lowerEffectCall(ctx, callee.name, node);
    return;
  }
  const value = lowerCall(ctx, node);
  if (value.kind !== 'expr') fail('K301', node, `'${textOf(ctx, node)}' does nothing.`);
  ctx.out.push({ kind: 'effect', at: node.start, expr: settle(ctx, value.expr, node) });
}
