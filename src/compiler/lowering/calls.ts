// Lowers calls that return a value: builtins, helpers, local arrow functions, and array methods.
import type { ArrowFunctionExpression, CallExpression, Expression } from 'acorn';
import { lowerBuiltin } from './builtin-calls.js';
import { type Binding, type Context, fail, identifierOf, Scope, textOf, type Value } from './context.js';
import { asExpr, elementType, evaluate, lowerFitted, lowerIndex } from './expressions.js';
import type { ArrayRef, Expr, FuncIr, ScalarType, Variable } from '../ir/ir.js';
import { lowerDraw } from './random.js';
import { convert, settle, variableExpr } from './types.js';
import { repeatable, withBinds } from './vectors.js';

/** Lowers a call used as a value. */
export function lowerCall(ctx: Context, node: CallExpression): Value {
  if (node.optional) fail('K301', node, "'?.' is not part of the kernel language: no value of a kernel is undefined.");
  const callee = evaluate(ctx, node.callee);
  switch (callee.kind) {
    case 'method':
      return arrayMethod(ctx, callee.array, callee.indices, callee.name, node);
    case 'draw':
      return { kind: 'expr', expr: lowerDraw(ctx, callee.array, callee.draw, node) };
    case 'builtin':
      return lowerBuiltin(ctx, callee.name, node);
    case 'func':
      return { kind: 'expr', expr: lowerHelper(ctx, callee.func, node) };
    case 'arrow':
      return expandArrow(ctx, callee.node, callee.scope, node);
    default:
      return fail('K101', node.callee, `'${textOf(ctx, node.callee)}' is not a function that kernels can call.`);
  }
}

/** The arguments of a call. Fails unless their number is in range and none is a spread. */
export function argumentsOf(ctx: Context, node: CallExpression, name: string, least: number, most: number = least): readonly Expression[] {
  const count = node.arguments.length;
  if (count < least || count > most) {
    const wanted = least === most ? String(least) : most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
    fail('K212', node, `'${name}' takes ${wanted} argument${wanted === '1' ? '' : 's'}, not ${count}.`);
  }
  return node.arguments.map((argument) => {
    if (argument.type === 'SpreadElement')
      return fail('K301', argument, `'${textOf(ctx, argument)}': spread is not part of the kernel language.`);
    return argument;
  });
}

function arrayMethod(ctx: Context, array: ArrayRef, given: readonly Expr[], name: 'at' | 'set', node: CallExpression): Value {
  if (name === 'set') return fail('K301', node, "'set' is used as a value.", 'Write it as a statement of its own.');
  const left = array.rank - given.length;
  const indices = argumentsOf(ctx, node, `${array.name}.at`, left).map((argument) => lowerIndex(ctx, argument));
  return { kind: 'expr', expr: { kind: 'load', type: elementType(array), array, indices: [...given, ...indices] } };
}

function lowerHelper(ctx: Context, func: FuncIr, node: CallExpression): Expr {
  const args = argumentsOf(ctx, node, func.name, func.params.length);
  ctx.calledFuncs.add(func);
  return {
    kind: 'call',
    type: func.result,
    func,
    args: args.map((argument, at) =>
      lowerFitted(ctx, argument, (value, part) => convert(ctx, value, func.params[at]!.type as ScalarType, part)),
    ),
  };
}

/** The expression that a local arrow function returns. */
function arrowResult(ctx: Context, arrow: ArrowFunctionExpression): Expression {
  if (arrow.body.type !== 'BlockStatement') return arrow.body;
  const [only] = arrow.body.body;
  if (arrow.body.body.length === 1 && only?.type === 'ReturnStatement' && only.argument) return only.argument;
  return fail(
    'K302',
    arrow,
    `'${textOf(ctx, arrow)}': a function inside a kernel must be one expression.`,
    'Make it a helper with func(...), or write it in place.',
  );
}

function expandArrow(ctx: Context, arrow: ArrowFunctionExpression, scope: Scope, node: CallExpression): Value {
  const result = arrowResult(ctx, arrow);
  if (ctx.expanding.has(arrow))
    fail('K302', node, `'${textOf(ctx, node.callee)}' calls itself: kernels have no recursion.`, 'Write a loop.');
  const nodes = argumentsOf(ctx, node, textOf(ctx, node.callee), arrow.params.length);
  const inner = new Scope(scope);
  const bound: Binding[] = [];
  nodes.forEach((argument, at) => {
    const name = identifierOf(arrow.params[at]!, 'A parameter of a local function');
    const given = evaluate(ctx, argument);
    if (given.kind === 'vector') {
      const { binds, ...vector } = repeatable(given, name);
      bound.push(...binds);
      inner.define(name, { ...vector, binds: [], variables: undefined });
      return;
    }
    if (given.kind !== 'expr' && given.kind !== 'local') {
      inner.define(name, given);
      return;
    }
    const value = asExpr(ctx, given, argument);
    if (value.kind === 'const' || value.kind === 'wide') {
      inner.define(name, { kind: 'expr', expr: value });
      return;
    }
    const settled = settle(ctx, value, argument);
    const variable: Variable = { name, type: settled.type, isConst: true };
    bound.push({ variable, value: settled });
    inner.define(name, { kind: 'expr', expr: variableExpr(variable) });
  });
  const outer = ctx.scope;
  ctx.scope = inner;
  ctx.expanding.add(arrow);
  try {
    const body = evaluate(ctx, result);
    if (body.kind === 'vector') return { ...body, binds: [...bound, ...body.binds], variables: undefined };
    return { kind: 'expr', expr: withBinds(bound, asExpr(ctx, body, result)) };
  } finally {
    ctx.scope = outer;
    ctx.expanding.delete(arrow);
  }
}
