// Lowers atomics, and lists the element types that each supports.
import type { CallExpression } from 'acorn';
import type { DType } from '../../core/elements/dtype.js';
import { argumentsOf } from './calls.js';
import { type Context, fail } from './context.js';
import { elementType, evaluate, lowerFitted, lowerIndex } from './expressions.js';
import type { AtomicOp, Expr } from '../ir/ir.js';
import { convert } from './types.js';

interface Atomic {
  readonly op: AtomicOp;
  /** Element types that CUDA supports for this atomic. */
  readonly types: readonly DType[];
}

const WHOLE: readonly DType[] = ['i32', 'u32', 'u64'];
const ATOMICS: Readonly<Record<string, Atomic>> = {
  atomicAdd: { op: 'add', types: [...WHOLE, 'f32', 'f64'] },
  atomicSub: { op: 'sub', types: ['i32', 'u32'] },
  atomicMin: { op: 'min', types: [...WHOLE, 'i64'] },
  atomicMax: { op: 'max', types: [...WHOLE, 'i64'] },
  atomicAnd: { op: 'and', types: WHOLE },
  atomicOr: { op: 'or', types: WHOLE },
  atomicXor: { op: 'xor', types: WHOLE },
  atomicExch: { op: 'exchange', types: [...WHOLE, 'f32'] },
  atomicCAS: { op: 'cas', types: WHOLE },
};

export function isAtomic(name: string): boolean {
  return Object.hasOwn(ATOMICS, name);
}

/** `atomicAdd(array, index, value)`, where `array` is a one-dimensional array or a row. */
export function lowerAtomic(ctx: Context, name: string, node: CallExpression): Expr {
  const { op, types } = ATOMICS[name]!;
  const args = argumentsOf(ctx, node, name, op === 'cas' ? 4 : 3);
  const target = evaluate(ctx, args[0]!);
  if (target.kind !== 'array' || target.array.rank - target.indices.length !== 1) {
    return fail('K210', args[0]!, `'${name}' takes an array of one dimension, then the index.`);
  }
  const { array } = target;
  if (array.isReadOnly) fail('K211', args[0]!, `'${array.name}' is an input, which a kernel only reads.`, 'Declare it as inout(...).');
  if (array.space === 'local') {
    fail('K209', args[0]!, `'${name}' does not work on local memory: '${array.name}' belongs to one thread.`, 'Read it and assign it.');
  }
  if (!types.includes(array.dtype))
    fail('K209', args[0]!, `'${name}' does not work on ${array.dtype}.`, `It works on ${types.join(', ')}.`);
  const type = elementType(array);
  const indices = [...target.indices, lowerIndex(ctx, args[1]!)];
  const values = args.slice(2).map((argument) => lowerFitted(ctx, argument, (value, at) => convert(ctx, value, type, at)));
  ctx.effects++;
  return { kind: 'atomic', type, op, array, indices, args: values };
}
