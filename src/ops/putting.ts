// Elements written to places by number.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { MAX_RANK } from '../protocol/protocol.gen.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { type AxisOptions, checkNotEmpty, placeOf } from './assembly.js';
import { Arguments } from './body.js';
import { arraysAmong, isArray, onlyArrays, placesIn, storeText } from './fused.js';
import { broadcastShape, broadcastStrides, checkAxis, isSameList, joined } from './layout.js';
import { besideNumber, isSameKind } from './promotion.js';
import { inType } from './ready.js';
import { copied } from './rows.js';
import { targetOf, type Target } from './target.js';

/** Options of `put`. */
export type PutOptions = Pick<AxisOptions, 'axis' | 'stream' | 'device'>;

/**
 * Writes values to the elements with these numbers along an axis, in place, and returns the array: `a[indices] = values` in NumPy and CuPy, for vectors
 * `numpy.put`; the counterpart of `take`. The values, an array or a number, broadcast to the shape that `take` gives. Negative numbers count from the
 * end. Of equal numbers the last one in the order of `indices` wins, as in NumPy. For a number outside the axis the operation fails with a
 * BoundsError, and the array counts as failed. Throws ArgumentError for indices that are no integers, for an axis without elements, for values that would lose their kind
 * (floats in integers), and as every operation does.
 * @example put(table, rows, 0); // table[rows] = 0
 */
export function put<A extends DeviceArray>(
  a: A,
  indices: DeviceArray,
  values: DeviceArray | number | bigint | boolean,
  opts?: PutOptions,
): A {
  if (arguments.length > 4) refuseSurplus('put', arguments, 4);
  onlyArrays('put', [a, indices]);
  const arrays = arraysAmong('put', [a, indices, values]);
  checkOptionNames(opts ?? {}, ['axis', 'stream', 'device']);
  const target = targetOf('put', opts, arrays, ['axis']);
  if (!/^[iu]\d+$/.test(indices.dtype))
    throw badArgument('indices', indices, `The indices of put (${indices.label}) are no integers.`, 'i32');
  const axis = checkAxis(opts?.axis ?? 0, a.shape.length);
  const shape = a.shape.toSpliced(axis, 1, ...indices.shape);
  if (shape.length > MAX_RANK) {
    const message = `The values of put have more dimensions (${shape.length}) than an array has (${MAX_RANK}).`;
    throw badArgument('indices', indices, message, MAX_RANK);
  }
  checkNotEmpty('put', a, axis, indices, shape);
  const from = isArray(values) ? values.dtype : besideNumber(a.dtype, values);
  if (!isSameKind(from, a.dtype)) {
    const message = `The values of put (${isArray(values) ? values.label : show(values)}) are ${from} and do not go into ${a.label}: astype() them.`;
    throw badArgument('values', values, message, a.dtype);
  }
  if (isArray(values)) {
    const both = broadcastShape('put', [shape, values.shape]);
    if (!isSameList(both, shape))
      throw badArgument('values', values, `The values of put (${values.label}) do not broadcast to the shape ${show(shape)}.`, shape);
  }
  if (lengthOf(shape) === 0) return a;
  // What is read as one line, or would be overwritten before it is read, is copied.
  using whole = a.isContiguous ? undefined : copied(a, target);
  using numbers = indices.isContiguous && indices.storage !== a.storage ? undefined : copied(indices, target);
  using own = isArray(values) && values.storage === a.storage ? copied(values, target) : undefined;
  submit(whole ?? a, numbers ?? indices, own ?? values, shape, axis, target);
  if (whole !== undefined) target.recorder.copy(a as DeviceArray, whole);
  return a;
}

function submit(
  a: DeviceArray,
  indices: DeviceArray,
  values: DeviceArray | number | bigint | boolean,
  shape: readonly number[],
  axis: number,
  target: Target,
): void {
  const { recorder } = target;
  const extent = a.shape[axis] as number;
  const chosen = indices.length;
  const inner = lengthOf(a.shape.slice(axis + 1));
  using last = target.temporary([extent], 'i32') as DeviceArray<'i32'>;
  recorder.fill(last, -1);
  const find = new Arguments();
  find.checked('a', last, 1, 'inout');
  find.array('indices', indices);
  find.numbers({ extent });
  find.launch(recorder, 'put', 'last', { threads: chosen }, 'i, atomicMax', () => `${placeOf(indices, 'i')} atomicMax(a, chosen0, i);`);
  const args = new Arguments();
  args.array('y', a, 'inout');
  args.array('indices', indices);
  args.array('last', last);
  args.numbers({ extent, inner, chosen });
  let value = 'v';
  let place = '';
  const type = REGISTER_TYPE[a.dtype];
  let from = type;
  if (isArray(values)) {
    const { extents, strides } = joined({ extents: shape, strides: [broadcastStrides(values, shape)] });
    const first = args.array('x', values);
    args.numbers({ first });
    for (const [own, stride] of strides[0]!.entries()) args.numbers({ [`s${own}`]: stride });
    for (const [own, size] of extents.entries()) if (own > 0) args.numbers({ [`e${own}`]: size });
    place = placesIn('i', extents.length - 1, 'p', 'e');
    value = `x[first${extents.map((_, own) => ` + p${own} * s${own}`).join('')}]`;
    from = REGISTER_TYPE[values.dtype];
  } else {
    const as = type as DType;
    const number = as === 'bool' ? (Boolean(values) as never) : as === 'i64' || as === 'u64' ? BigInt(values) : Number(values);
    args.give('v', scalarOf(as), inType(a.dtype, number) as number | bigint);
  }
  // It may run before the failure of the kernel above is known, so it leaves out what is outside.
  args.launch(
    recorder,
    'put',
    `values|${place}|${value}|${from}`,
    { threads: lengthOf(shape) },
    'i',
    () => `
    const column = i % inner; const rest = idiv(i, inner); const at = rest % chosen; const outer = idiv(rest, chosen); ${placeOf(indices, 'at')}
    if (chosen0 >= 0 && chosen0 < extent) {
      if (last[chosen0] === at) { ${place} ${storeText('y[(outer * extent + chosen0) * inner + column]', value, from, a.dtype)} }
    }`,
  );
}
