// Lowers a parsed function to typed IR, in passes, until every `let` has a type.
//
// A pass that infers a type is followed by another one, even if it ended in an error, since the missing type may have caused the error.
// Once nothing more is inferred, untyped variables get their default (i32, u32 if first combined with u32, f32 for decimals), and the last
// pass runs. Each pass types at least one variable, so lowering ends. A `let` that no pass sees reassigned becomes a `const`.
import type { Pattern } from 'acorn';
import type { Param, Params } from '../../core/kernels/kernel.js';
import { type Context, fail, identifierOf, Scope, type Surroundings, type Value } from './context.js';
import { KernelTextError } from '../diagnostics/diagnostics.js';
import { lowerFitted } from './expressions.js';
import type { ArrayRef, FuncIr, KernelIr, ScalarType, Stmt, Variable } from '../ir/ir.js';
import type { Constants } from '../language/language.js';
import { bindsLongName } from '../source/bindings.js';
import { isTooDeep, tooDeep } from '../diagnostics/depth.js';
import type { ParsedFunction } from '../source/parse.js';
import { bindPattern } from './declarations.js';
import { lowerBody } from './statements.js';
import { convert, REGISTER_TYPE, variableExpr } from './types.js';

interface Lowered {
  readonly body: readonly Stmt[];
  readonly context: Context;
}

/** Several times as many as a source of the greatest allowed length contains. */
const MAX_EXPRESSIONS = 200_000;
/** About half a second of work: in a chain of variables whose types depend on each other, each one takes a pass. */
const MAX_EXPRESSIONS_OF_ALL_PASSES = 1_000_000;

/** State that one pass hands to the next. */
type Learnt = Pick<Context, 'resolved' | 'lets' | 'assigned' | 'constants' | 'met' | 'budget'>;

function freshContext(text: string, around: Surroundings, isHelper: boolean, hasLongNames: boolean, learnt: Learnt): Context {
  const scope = new Scope(undefined);
  return {
    text,
    around,
    ...learnt,
    untyped: new Map(),
    hasLearnt: false,
    scope,
    bodyScope: scope,
    isHelper,
    arrays: [],
    out: [],
    empty: new Set(),
    indexRank: 0,
    calledFuncs: new Set(),
    effects: 0,
    isMinified: false,
    hasLongNames,
    expanding: new Set(),
  };
}

/** Repeats passes until everything is typed. `run` lowers the whole function once. */
function untilTyped({ text, node: root }: ParsedFunction, around: Surroundings, isHelper: boolean, run: (ctx: Context) => void): Lowered {
  const hasLongNames = bindsLongName(root);
  const learnt: Learnt = {
    resolved: new Map(),
    lets: new Set(),
    assigned: new Set(),
    constants: new Set(),
    met: new Map(),
    budget: { ofPass: 0, ofAll: MAX_EXPRESSIONS_OF_ALL_PASSES },
  };
  for (;;) {
    learnt.budget.ofPass = MAX_EXPRESSIONS;
    const ctx = freshContext(text, around, isHelper, hasLongNames, learnt);
    let error: unknown;
    try {
      run(ctx);
    } catch (thrown) {
      error = thrown;
    }
    if (isTooDeep(error)) throw tooDeep();
    if (ctx.hasLearnt && learnt.budget.ofAll > 0 && learnt.budget.ofPass > 0) continue;
    // Variables that are never reassigned are known only after a complete pass without errors.
    const fixed = error === undefined ? [...learnt.lets].filter((node) => !learnt.assigned.has(node) && !learnt.constants.has(node)) : [];
    if (fixed.length > 0) {
      for (const node of fixed) learnt.constants.add(node);
      continue;
    }
    if (error !== undefined && !(error instanceof KernelTextError && ctx.untyped.size > 0)) throw error;
    if (ctx.untyped.size === 0) return { body: ctx.out, context: ctx };
    for (const [variable, node] of ctx.untyped) {
      const whole: ScalarType = learnt.met.get(node) ?? 'i32';
      const type = variable.type === 'float literal' ? 'f32' : variable.type === 'bigint literal' ? 'i64' : whole;
      learnt.resolved.set(node, { type, by: node });
    }
  }
}

function argumentValue(name: string, param: Param, parameter: number): Value {
  const type = REGISTER_TYPE[param.dtype];
  if (param.kind === 'scalar') return { kind: 'expr', expr: { kind: 'scalar', type, dtype: param.dtype, name } };
  const array: ArrayRef = {
    name,
    space: 'parameter',
    number: parameter,
    dtype: param.dtype,
    rank: param.rank,
    extents: [],
    isReadOnly: param.access === 'in',
  };
  return { kind: 'array', array, indices: [] };
}

function bindParameter(ctx: Context, pattern: Pattern | undefined, from: 'args' | 'env'): void {
  if (!pattern) return;
  if (pattern.type === 'Identifier') ctx.scope.define(pattern.name, { kind: from });
  else bindPattern(ctx, pattern, from);
}

/** Lowers a kernel's body. */
export function lowerKernel(
  name: string,
  parsed: ParsedFunction,
  params: Params,
  constants: Constants,
  functions: ReadonlyMap<string, FuncIr>,
): KernelIr {
  const { node } = parsed;
  if (node.params.length > 2) fail('K004', node.params[2]!, 'A body has two parameters at most: the arguments and the thread.');
  const args = new Map(Object.entries(params).map(([key, param], at) => [key, argumentValue(key, param, at)] as const));
  const { body, context } = untilTyped(parsed, { args, constants, functions }, false, (ctx) => {
    bindParameter(ctx, node.params[0], 'args');
    bindParameter(ctx, node.params[1], 'env');
    ctx.scope = ctx.bodyScope = new Scope(ctx.scope);
    if (node.body.type === 'BlockStatement') lowerBody(ctx, node.body.body, undefined);
    // The expression of an arrow function without braces becomes a statement.
    else lowerBody(ctx, [{ type: 'ExpressionStatement', expression: node.body, start: node.body.start, end: node.body.end }], undefined);
  });
  return { name, body, arrays: context.arrays, funcs: [...context.calledFuncs], indexRank: context.indexRank };
}

/** Lowers a helper's body. */
export function lowerFunc(name: string, parsed: ParsedFunction, params: readonly ScalarType[], result: ScalarType): FuncIr {
  const { node } = parsed;
  if (node.params.length !== params.length) {
    fail(
      'K004',
      node,
      `The helper has ${node.params.length} parameter${node.params.length === 1 ? '' : 's'}, but ${params.length} type${params.length === 1 ? '' : 's'}.`,
    );
  }
  const variables = node.params.map(
    (pattern, at): Variable => ({ name: identifierOf(pattern, 'A parameter of a helper'), type: params[at]!, isConst: true }),
  );
  const around: Surroundings = { args: new Map(), constants: {}, functions: new Map() };
  const { body } = untilTyped(parsed, around, true, (ctx) => {
    for (const variable of variables) ctx.scope.define(variable.name, { kind: 'expr', expr: variableExpr(variable) });
    ctx.scope = ctx.bodyScope = new Scope(ctx.scope);
    if (node.body.type === 'BlockStatement') {
      lowerBody(ctx, node.body.body, result);
      if (!endsInReturn(ctx.out)) fail('K303', node, `The helper does not return a value on every path.`);
    } else {
      ctx.out.push({ kind: 'return', at: node.body.start, value: lowerFitted(ctx, node.body, (arm, at) => convert(ctx, arm, result, at)) });
    }
  });
  return { name, params: variables, result, body };
}

function endsInReturn(body: readonly Stmt[]): boolean {
  const last = body.at(-1);
  if (last?.kind === 'return') return true;
  if (last?.kind === 'block') return endsInReturn(last.body);
  return last?.kind === 'if' && endsInReturn(last.then) && endsInReturn(last.otherwise);
}
