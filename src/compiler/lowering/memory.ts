// Lowers declarations of shared and local arrays. The declaration fixes the size, except for dynamic shared memory.
import { didYouMeanDType } from '../../core/elements/dtype-names.js';
import type { CallExpression, Expression } from 'acorn';
import { type DType, DTYPES } from '../../core/elements/dtype.js';
import { MEMORY_FUNCTIONS, TYPE_NAMES } from '../ir/builtins.js';
import { argumentsOf } from './calls.js';
import { type Context, fail, textOf, type Value } from './context.js';
import { evaluate, lowerExpr } from './expressions.js';
import { type ArrayRef, type ArraySpace, MAX_SHARED_BYTES } from '../ir/ir.js';

/** CUDA's limit per thread. */
const MAX_LOCAL_BYTES = 512 * 1024;
const MAX_RANK = 3;

const SPACES: Readonly<Record<string, ArraySpace>> = { shared: 'shared', sharedDynamic: 'dynamic shared', local: 'local' };
const EXAMPLES: Readonly<Record<string, string>> = {
  shared: 'const tile = shared(f32, 256);',
  sharedDynamic: 'const tile = sharedDynamic(f32);',
  local: 'const seen = local(i32, 8);',
  rng: 'const random = rng(seed, i);',
};

/** The array that the initialiser declares; undefined when it is not a memory function. */
export function declaredMemory(ctx: Context, name: string, init: Expression): Value | undefined {
  if (init.type !== 'CallExpression' || init.optional) return undefined;
  const callee = evaluate(ctx, init.callee);
  if (callee.kind !== 'builtin' || !MEMORY_FUNCTIONS.includes(callee.name)) return undefined;
  const array = declareMemory(ctx, name, callee.name, init);
  ctx.arrays.push(array);
  return { kind: 'array', array, indices: [] };
}

/** Fails: memory outside a declaration has no name for error reports, and an undeclared generator would restart at every draw. */
export function misplaced(node: CallExpression, name: string): never {
  return fail('K402', node, `'${name}' is used outside of a declaration.`, `Declare a name for it: ${EXAMPLES[name]}`);
}

function declareMemory(ctx: Context, name: string, what: string, node: CallExpression): ArrayRef {
  if (ctx.isHelper) fail('K402', node, `'${what}' is used in a helper.`, 'Only the body of a kernel can declare memory.');
  if (what !== 'local' && ctx.scope !== ctx.bodyScope) {
    fail(
      'K402',
      node,
      `'${name}' is declared in an inner block, and shared memory belongs to the whole body.`,
      'Move the declaration to the top of the body.',
    );
  }
  const space = SPACES[what]!;
  const args = argumentsOf(ctx, node, what, space === 'dynamic shared' ? 1 : 2);
  const dtype = elementTypeOf(ctx, what, args[0]!);
  const extents = space === 'dynamic shared' ? [] : extentsOf(ctx, name, args[1]!);
  const array: ArrayRef = {
    name,
    space,
    number: ctx.around.args.size + ctx.arrays.length,
    dtype,
    rank: extents.length || 1,
    extents,
    isReadOnly: false,
  };
  checkLimit(ctx, array, node);
  return array;
}

function elementTypeOf(ctx: Context, what: string, node: Expression): DType {
  const name = node.type === 'Literal' && typeof node.value === 'string' ? node.value : namedType(ctx, node);
  if (TYPE_NAMES.includes(name)) return name as DType;
  return fail(
    'K209',
    node,
    `'${what}' takes an element type, and '${textOf(ctx, node)}' is not an element type of TypeScript kernels.`,
    `The types are ${TYPE_NAMES.join(', ')}${didYouMeanDType(name)}.`,
  );
}

function namedType(ctx: Context, node: Expression): string {
  const value = evaluate(ctx, node);
  return value.kind === 'builtin' ? value.name : '';
}

function extentsOf(ctx: Context, name: string, node: Expression): number[] {
  if (node.type !== 'ArrayExpression') return [extentOf(ctx, name, node)];
  if (node.elements.length < 1 || node.elements.length > MAX_RANK) {
    fail('K403', node, `'${name}' has ${node.elements.length} dimensions (1 to ${MAX_RANK}).`);
  }
  return node.elements.map((element) =>
    element === null || element.type === 'SpreadElement'
      ? fail('K403', node, `The size of '${name}' (${textOf(ctx, node)}) must be a list of numbers.`)
      : extentOf(ctx, name, element),
  );
}

function extentOf(ctx: Context, name: string, node: Expression): number {
  const size = lowerExpr(ctx, node);
  if (size.kind !== 'const' || size.type === 'bool') {
    return fail(
      'K403',
      node,
      `The size of '${name}' (${textOf(ctx, node)}) must be known when the kernel is made.`,
      'Use numbers and { constants }. Shared memory whose size the launch gives is sharedDynamic(type).',
    );
  }
  if (Number.isInteger(size.value) && size.value >= 1) return size.value;
  return fail('K403', node, `The size of '${name}' (${size.value}) must be a whole number of at least 1.`);
}

function checkLimit(ctx: Context, array: ArrayRef, node: CallExpression): void {
  const isShared = array.space === 'shared';
  const alike = [...ctx.arrays, array].filter((one) => one.space === array.space && one.extents.length > 0);
  const bytes = alike.reduce((sum, one) => sum + one.extents.reduce((a, b) => a * b, DTYPES[one.dtype].byteSize), 0);
  const limit = isShared ? MAX_SHARED_BYTES : MAX_LOCAL_BYTES;
  if (bytes <= limit) return;
  fail(
    'K404',
    node,
    `With '${array.name}' the ${isShared ? 'shared memory of a block' : 'local memory of a thread'} is ${bytes} bytes (${limit} at most).`,
    isShared ? 'Use sharedDynamic(type), and pass its size at the launch: { grid, block, sharedBytes }.' : 'Use an array of the launch.',
  );
}
