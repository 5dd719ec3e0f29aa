// Lowers random numbers: `const r = rng(seed, sequence)` declares a generator, and its members draw from it.
//
// A generator is a local array of the thread, so it is stored like other local memory; prelude-random.ts defines its layout.
import type { AnyNode, CallExpression, Expression } from 'acorn';
import { RANDOM_FUNCTION, RANDOM_WORDS } from '../ir/builtins.js';
import { argumentsOf } from './calls.js';
import { type Context, fail, textOf, type Value } from './context.js';
import { evaluate, lowerSettled } from './expressions.js';
import type { ArrayRef, Draw, Expr } from '../ir/ir.js';
import { castTo } from './operators.js';
import { isInteger, typeName } from './types.js';

const DRAWS: readonly string[] = ['uniform', 'normal', 'u32'];

/** The generator that the initialiser declares; undefined when it is not a call of `rng`. */
export function declaredGenerator(ctx: Context, name: string, init: Expression): Value | undefined {
  if (init.type !== 'CallExpression' || init.optional) return undefined;
  const callee = evaluate(ctx, init.callee);
  if (callee.kind !== 'builtin' || callee.name !== RANDOM_FUNCTION) return undefined;
  if (ctx.isHelper) fail('K302', init, "'rng' is used in a helper.", 'Draw the numbers in the kernel and pass them to the helper.');
  const [seed, sequence] = argumentsOf(ctx, init, 'rng', 2).map((argument) => word(ctx, argument));
  const array: ArrayRef = {
    name,
    space: 'local',
    number: ctx.around.args.size + ctx.arrays.length,
    dtype: 'u32',
    rank: 1,
    extents: [RANDOM_WORDS],
    isReadOnly: false,
  };
  ctx.arrays.push(array);
  ctx.out.push({ kind: 'seed', at: init.start, array, seed: seed!, sequence: sequence! });
  return { kind: 'generator', array };
}

/** An integer as 32 bits. */
function word(ctx: Context, node: Expression): Expr {
  const value = lowerSettled(ctx, node);
  if (!isInteger(value.type)) fail('K206', node, `'rng' takes whole numbers, and '${textOf(ctx, node)}' is ${typeName(value.type)}.`);
  return castTo(ctx, value, 'u32', node);
}

/** Resolves `r.uniform` as a callable member. */
export function generatorMember(ctx: Context, array: ArrayRef, name: string, node: AnyNode): Value {
  if (DRAWS.includes(name)) return { kind: 'draw', array, draw: name as Draw };
  return fail('K101', node, `'${textOf(ctx, node)}' does not exist.`, `A generator has ${DRAWS.join(', ')}.`);
}

/** Lowers `r.uniform()`. */
export function lowerDraw(ctx: Context, array: ArrayRef, draw: Draw, node: CallExpression): Expr {
  argumentsOf(ctx, node, `${array.name}.${draw}`, 0);
  ctx.effects++;
  return { kind: 'draw', type: draw === 'u32' ? 'u32' : 'f32', draw, array };
}
