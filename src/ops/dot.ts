// numpy.dot: products of numbers, vectors and matrices by one name.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { multiply } from './arithmetic.js';
import { arraysAmong, isArray, type Operand } from './fused.js';
import { multiplied } from './matmul.js';
import { promoted } from './promotion.js';
import type { Beside, Result, Together } from './ready.js';
import { copied, zeroed } from './rows.js';
import { type OpOptions, targetOf } from './target.js';

/**
 * The sums of products along the last axis of `a` and the last but one of `b` (the only one of a vector): `numpy.dot`, `cupy.dot`. Of two vectors and two
 * matrices it is `matmul`; beside a number, or an array without dimensions, `multiply`. Where `matmul` broadcasts the axes before the last
 * two, `dot` has those of both: `[i, k]` and `[j, k, n]` give `[i, j, n]`. Throws as `matmul` does.
 * @example const length2 = await dot(v, v).item();
 */
export function dot<A extends Operand, B extends Operand, const O extends OpOptions = Record<never, never>>(
  a: A,
  b: B & Beside<A>,
  opts?: O,
): Result<O, Together<A, B>> {
  if (arguments.length > 3) refuseSurplus('dot', arguments, 3);
  arraysAmong('dot', [a, b]);
  return (
    isNumber(a) || isNumber(b) ? multiply(a, b as never, opts) : products(a as DeviceArray, b as unknown as DeviceArray, opts)
  ) as Result<O, Together<A, B>>;
}

const isNumber = (operand: Operand): boolean => !isArray(operand) || operand.shape.length === 0;

function products(a: DeviceArray, b: DeviceArray, opts: OpOptions | undefined): DeviceArray {
  const rank = b.shape.length;
  if (rank < 3 || a.shape.length < 2 || a.shape.at(-1) !== b.shape.at(-2)) return multiplied('dot', a, b, opts);
  // The axes of `b` that stay are the columns of one matrix.
  const target = targetOf('dot', opts, [a, b]);
  const dtype = target.typeOf(promoted(a.dtype, b.dtype));
  const inner = a.shape.at(-1) as number;
  const order = [rank - 2, ...b.shape.keys()].filter((axis, at) => at === 0 || axis !== rank - 2);
  const shape = [...a.shape.slice(0, -1), ...b.shape.filter((_, axis) => axis !== rank - 2)];
  return target.write(shape, dtype, [a, b], (into) => {
    using left = a.isContiguous ? undefined : copied(a, target);
    using right = copied(b.transpose(order), target);
    const [rows, columns] = [a.length / Math.max(1, inner), right.length / Math.max(1, inner)];
    if (inner === 0) zeroed(into, target);
    else
      multiplied('dot', (left ?? a).reshape([rows, inner]), right.reshape([inner, columns]), {
        out: into.reshape([rows, columns]),
        dtype,
        stream: target.recorder,
      });
  });
}
