// Lowers calls that must be statements: barriers, fences, print and assert.
import type { CallExpression, Expression } from 'acorn';
import { argumentsOf } from './calls.js';
import { type Context, fail, pinned, textOf } from './context.js';
import { asExpr, evaluate, lowerExpr } from './expressions.js';
import { type BarrierScope, type Expr, isStable } from '../ir/ir.js';
import { condition, isUntyped, settle } from './types.js';
import { settled } from './vectors.js';

const BARRIERS: Readonly<Record<string, BarrierScope>> = { syncwarp: 'warp', syncthreads: 'block', gridSync: 'grid' };

/** Lowers a call of one of EFFECT_FUNCTIONS. */
export function lowerEffectCall(ctx: Context, name: string, node: CallExpression): void {
  const at = node.start;
  const scope = BARRIERS[name];
  if (ctx.isHelper && name !== 'threadfence') {
    fail('K302', node, `'${name}' is used in a helper.`, 'Only the body of a kernel can have barriers, print and assert.');
  }
  if (name === 'print') {
    ctx.out.push({ kind: 'print', at, parts: printed(ctx, node) });
    return;
  }
  if (name === 'assert') {
    const [argument] = argumentsOf(ctx, node, name, 1);
    ctx.out.push({ kind: 'assert', at, test: condition(ctx, lowerExpr(ctx, argument!), argument!), text: textOf(ctx, argument!) });
    return;
  }
  argumentsOf(ctx, node, name, 0);
  ctx.out.push(scope === undefined ? { kind: 'fence', at } : { kind: 'barrier', at, scope });
}

/** The parts of a printed line: a space between arguments, none inside a template, and adjacent strings joined. */
function printed(ctx: Context, node: CallExpression): (string | Expr)[] {
  const before = ctx.effects;
  let parts: (string | Expr)[] = [];
  const add = (part: string | Expr): void => {
    const last = parts.at(-1);
    if (typeof part === 'string' && typeof last === 'string') parts[parts.length - 1] = last + part;
    else if (part !== '') parts.push(part);
  };
  argumentsOf(ctx, node, 'print', 0, Number.POSITIVE_INFINITY).forEach((argument, at) => {
    if (at > 0) add(' ');
    const declared = ctx.out.length;
    const own = partsOf(ctx, argument);
    // A vector's temporaries are declared before the line, so earlier values go into temporaries first, which keeps the evaluation order.
    const mine = ctx.out.splice(declared);
    if (mine.length > 0) parts = computed(ctx, parts, node.start);
    ctx.out.push(...mine);
    for (const part of own) add(part);
  });
  return ctx.effects > before ? computed(ctx, parts, node.start) : parts;
}

/** Evaluates values into temporaries, in source order. */
function computed(ctx: Context, parts: readonly (string | Expr)[], at: number): (string | Expr)[] {
  return parts.map((part) => (typeof part === 'string' || isStable(part) ? part : pinned(ctx, 'part', part, at)));
}

function partsOf(ctx: Context, node: Expression): (string | Expr)[] {
  if (node.type === 'Literal' && typeof node.value === 'string') return [node.value];
  if (node.type !== 'TemplateLiteral') return valueParts(ctx, node);
  return node.quasis.flatMap((quasi, at) => {
    const between = node.expressions[at];
    return [quasi.value.cooked ?? '', ...(between === undefined ? [] : partsOf(ctx, between))];
  });
}

/** A vector prints as its components in parentheses. */
function valueParts(ctx: Context, node: Expression): (string | Expr)[] {
  const value = evaluate(ctx, node);
  if (value.kind !== 'vector') return [valueOrWord(ctx, asExpr(ctx, value, node), node)];
  const parts = settled(ctx, value, 'part', node.start);
  return ['(', ...parts.flatMap((part, at) => (at === 0 ? [part] : [', ', part])), ')'];
}

/** A value that the device formats; a literal number or boolean becomes a string here. */
function valueOrWord(ctx: Context, value: Expr, node: Expression): string | Expr {
  if (value.kind === 'const' && value.type === 'bool') return String(value.value !== 0);
  if ((value.kind === 'const' || value.kind === 'wide') && isUntyped(value.type)) return String(value.value);
  return settle(ctx, value, node);
}
