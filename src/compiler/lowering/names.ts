// Resolves the names of the kernel's source.
//
// Order: locals and parameters, then free names among constants, helpers, the thread's members and Math. Free names are accepted only when
// the source is not minified, because a minifier may happen to produce a name that the kernel language has. Shortened local names reveal
// minification.
import type { AnyNode, Identifier, MemberExpression } from 'acorn';
import { isAtomic } from './atomics.js';
import {
  EFFECT_FUNCTIONS,
  MEMORY_FUNCTIONS,
  RANDOM_FUNCTION,
  THREAD_FUNCTIONS,
  THREAD_INDICES,
  THREAD_VECTORS,
  TYPE_NAMES,
  VECTOR_FUNCTIONS,
} from '../ir/builtins.js';
import { type Context, fail, type Value } from './context.js';
import type { Axis, ThreadVector } from '../ir/ir.js';
import { SHORT_NAME } from '../source/bindings.js';
import { boolean, literal } from './types.js';
import { isVectorType } from './vectors.js';

/** Names that calls.ts, memory.ts and barriers-and-prints.ts handle. */
const NAMED = [THREAD_FUNCTIONS, VECTOR_FUNCTIONS, TYPE_NAMES, MEMORY_FUNCTIONS, EFFECT_FUNCTIONS, [RANDOM_FUNCTION]];

/** Resolves a name on its own. */
export function nameValue(ctx: Context, node: Identifier): Value {
  const { name } = node;
  const local = ctx.scope.lookup(name);
  if (local) return local;
  if (name === 'Math') return { kind: 'math' };
  if (name === 'Infinity') return { kind: 'expr', expr: literal(Number.POSITIVE_INFINITY) };
  if (name === 'NaN') return { kind: 'expr', expr: literal(Number.NaN) };
  return freeName(ctx, name, node);
}

/** Whether the name is undefined here, and so may be a module namespace. */
export function isUnknown(ctx: Context, name: string): boolean {
  return !ctx.scope.lookup(name) && !['Math', 'Infinity', 'NaN'].includes(name) && !lookup(ctx, name);
}

function freeName(ctx: Context, name: string, node: AnyNode): Value {
  const found = lookup(ctx, name);
  const hint = 'Take it from the second parameter of the body: constants, functions and the thread are there.';
  if (found && ctx.isMinified && !ctx.hasLongNames) {
    fail(
      'K103',
      node,
      `The function was built by esbuild or tsx, or minified, so the free name '${name}' may stand for another name.`,
      hint,
    );
  }
  if (found && name.length <= SHORT_NAME && !ctx.hasLongNames && !THREAD_INDICES.includes(name)) {
    fail(
      'K103',
      node,
      `The free name '${name}' may stand for another name: all names of the function are as short as a minifier makes them.`,
      hint,
    );
  }
  if (!found || THREAD_INDICES.includes(name)) refuse(name, node, declaring(name));
  return found;
}

/** Resolves a member of the second parameter or of a module namespace. */
export function environmentValue(ctx: Context, name: string, node: AnyNode): Value {
  return lookup(ctx, name) ?? refuse(name, node, 'Declare it in { constants } or { functions }.');
}

/** Resolves `module.name`, to which bundlers convert an imported name. The launch indices cannot be imported. */
export function importedName(ctx: Context, node: MemberExpression, object: string): Value {
  const name = !node.computed && node.property.type === 'Identifier' ? node.property.name : '';
  const whole = name === '' ? object : `${object}.${name}`;
  const found = THREAD_INDICES.includes(name) ? undefined : lookup(ctx, name);
  return (
    found ??
    fail(
      'K101',
      node,
      `'${whole}' is not known inside the kernel.`,
      insteadOf(whole) ?? (name === '' ? 'Pass an array as a parameter of the kernel.' : declaring(name, `${name}: ${whole}`)),
    )
  );
}

/** How to declare a name from outside of the kernel. */
function declaring(name: string, entry: string = name): string {
  return `Give a number as an option, { constants: { ${entry} } }, a helper as { functions: { ${entry} } }, and take ${name} from the second parameter of the body.`;
}

function refuse(name: string, node: AnyNode, hint: string): never {
  return fail('K101', node, `'${name}' is not known inside the kernel.`, insteadOf(name) ?? hint);
}

/** JavaScript names that kernels spell differently. */
const INSTEAD: Readonly<Record<string, string>> = {
  isNaN: 'Write v !== v.',
  'Number.isNaN': 'Write v !== v.',
  isFinite: 'Write Math.abs(v) < Infinity.',
  'Number.isFinite': 'Write Math.abs(v) < Infinity.',
  Number: 'Cast by i32(...), f32(...) or another type.',
  parseInt: 'Cast by i32(...).',
  parseFloat: 'Cast by f32(...) or f64(...).',
  undefined: 'Every value of a kernel is a number or a boolean.',
  'console.log': 'Write print(...).',
  'Math.random': 'Declare const r = rng(seed, sequence), and draw r.uniform().',
};

function insteadOf(name: string): string | undefined {
  return Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined;
}

/** Fails for a member of JavaScript's Math that kernels do not have. */
export function refuseMath(name: string, node: AnyNode): never {
  return fail('K101', node, `'Math.${name}' is not part of the kernel language.`, insteadOf(`Math.${name}`));
}

function lookup(ctx: Context, name: string): Value | undefined {
  if (Object.hasOwn(ctx.around.constants, name)) {
    const value = ctx.around.constants[name]!;
    return { kind: 'expr', expr: typeof value === 'boolean' ? boolean(value) : literal(value) };
  }
  const func = ctx.around.functions.get(name);
  if (func) return { kind: 'func', func };
  if (isAtomic(name) || isVectorType(name) || NAMED.some((names) => names.includes(name))) return { kind: 'builtin', name };
  if (THREAD_VECTORS.includes(name)) return { kind: 'thread', vector: name as ThreadVector | 'globalIdx' };
  const axis = THREAD_INDICES.indexOf(name);
  if (axis < 0) return undefined;
  ctx.indexRank = Math.max(ctx.indexRank, axis + 1) as Context['indexRank'];
  return { kind: 'expr', expr: { kind: 'index', type: 'i32', axis: axis as Axis } };
}
