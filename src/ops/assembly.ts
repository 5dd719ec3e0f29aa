// Arrays put together from others, and parts of arrays by number.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { Arguments } from './body.js';
import { onlyArrays } from './fused.js';
import { checkAxis } from './layout.js';
import { promoted } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { copied, moved } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';

/** Options of operations along one axis. */
export interface AxisOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis, negative from the end. Default 0. */
  readonly axis?: number;
}

function listed(name: string, arrays: readonly DeviceArray[]): readonly DeviceArray[] {
  if (!Array.isArray(arrays) || arrays.length === 0)
    throw badArgument('arrays', arrays, `The arrays of ${name} (${show(arrays)}) are no list of device arrays, as in ${name}([a, b]).`);
  onlyArrays(name, arrays);
  return arrays;
}

/**
 * The arrays one after another along an axis: `numpy.concatenate`. Their other dimensions are equal, and their types meet. Throws ArgumentError
 * for an empty list, for other shapes, and as every operation does.
 */
export function concatenate<A extends DeviceArray, const O extends AxisOptions = Record<never, never>>(
  arrays: readonly A[],
  opts?: O,
): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('concatenate', arguments, 2);
  const all = listed('concatenate', arrays);
  const target = targetOf('concatenate', opts, all, ['axis']);
  const [first] = all as readonly [DeviceArray];
  const rank = first.shape.length;
  const axis = checkAxis(opts?.axis ?? 0, rank);
  for (const one of all) {
    if (one.shape.length === rank && one.shape.every((extent, at) => at === axis || extent === first.shape[at])) continue;
    throw badArgument('arrays', one, `The shapes of concatenate differ: ${first.label} and ${one.label}, along axis ${axis}.`, first.shape);
  }
  const total = all.reduce((sum, one) => sum + (one.shape[axis] as number), 0);
  const shape = first.shape.map((extent, at) => (at === axis ? total : extent));
  const dtype = target.typeOf(all.map((one) => one.dtype).reduce(promoted));
  let at = 0;
  return assembled(all, shape, dtype, target, (result, one) => {
    const from = at;
    at += one.shape[axis] as number;
    return result.view(...shape.map((_, own) => (own === axis ? ([from, at] as const) : undefined)));
  }) as Result<O, TypeOf<A>>;
}

/** The arrays, of one shape, along a new axis: `numpy.stack`. Throws ArgumentError for an empty list, for other shapes, and as every operation does. */
export function stack<A extends DeviceArray, const O extends AxisOptions = Record<never, never>>(
  arrays: readonly A[],
  opts?: O,
): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('stack', arguments, 2);
  const all = listed('stack', arrays);
  const target = targetOf('stack', opts, all, ['axis']);
  const [first] = all as readonly [DeviceArray];
  const rank = first.shape.length + 1;
  const axis = checkAxis(opts?.axis ?? 0, rank);
  for (const one of all) {
    if (one.shape.length === rank - 1 && one.shape.every((extent, at) => extent === first.shape[at])) continue;
    throw badArgument('arrays', one, `The shapes of stack differ: ${first.label} and ${one.label}.`, first.shape);
  }
  const shape = first.shape.toSpliced(axis, 0, all.length);
  const dtype = target.typeOf(all.map((one) => one.dtype).reduce(promoted));
  let next = 0;
  return assembled(all, shape, dtype, target, (result) => {
    const at = next++;
    return result.view(...shape.map((_, own) => (own === axis ? at : undefined)));
  }) as Result<O, TypeOf<A>>;
}

function assembled(
  all: readonly DeviceArray[],
  shape: readonly number[],
  dtype: DType,
  target: Target,
  partOf: (result: DeviceArray, one: DeviceArray) => DeviceArray,
): DeviceArray {
  const result = target.take(shape, dtype);
  try {
    // A part may lie where a later operand is read.
    const overlaps = all.some((one) => one.storage === result.storage);
    using between = overlaps ? target.temporary(shape, dtype) : undefined;
    for (const one of all) {
      const part = partOf(between ?? result, one);
      if (part.length > 0) moved(part, one, target);
    }
    if (between !== undefined) target.recorder.copy(result, between);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result;
}

/**
 * Views of parts of an array along an axis: `parts` equal ones, or those that the numbers of a list separate: `numpy.split`. Copies nothing.
 * Throws ArgumentError for parts that are not equal, and for an axis that the array does not have.
 */
export function split<A extends DeviceArray>(a: A, parts: number | readonly number[], opts: { readonly axis?: number } = {}): A[] {
  if (arguments.length > 3) refuseSurplus('split', arguments, 3);
  onlyArrays('split', [a]);
  checkOptionNames(opts, ['axis']);
  const axis = checkAxis(opts.axis ?? 0, a.shape.length);
  const extent = a.shape[axis] as number;
  let bounds: readonly number[];
  if (typeof parts === 'number') {
    checkInteger('parts', parts, 1);
    if (extent % parts !== 0)
      throw badArgument('parts', parts, `The ${extent} elements along axis ${axis} are no ${parts} equal parts.`, extent);
    bounds = Array.from({ length: parts - 1 }, (_, at) => ((at + 1) * extent) / parts);
  } else if (!Array.isArray(parts)) {
    throw badArgument('parts', parts, `The parts of split (${show(parts)}) are neither a number nor a list of numbers.`);
  } else bounds = parts.map((bound: unknown) => checkInteger('bound', bound, 0, extent));
  return [0, ...bounds].map(
    (from, at) => a.view(...a.shape.map((_, own) => (own === axis ? ([from, bounds[at] ?? extent] as const) : undefined))) as A,
  );
}

/** The array, repeated along each axis: `numpy.tile`. `counts` has a number for each axis, or for more axes at the front. Throws as every operation does. */
export function tile<A extends DeviceArray, const O extends OpOptions = Record<never, never>>(
  a: A,
  counts: number | readonly number[],
  opts?: O,
): Result<O, TypeOf<A>> {
  if (arguments.length > 3) refuseSurplus('tile', arguments, 3);
  onlyArrays('tile', [a]);
  const target = targetOf('tile', opts, [a]);
  const own = (Array.isArray(counts) ? counts : [counts]).map((count: unknown) => checkInteger('count', count, 0));
  const rank = Math.max(own.length, a.shape.length);
  const repeats = [...Array.from({ length: rank - own.length }, () => 1), ...own];
  const extents = [...Array.from({ length: rank - a.shape.length }, () => 1), ...a.shape];
  const shape = extents.map((extent, axis) => extent * repeats[axis]!);
  const result = target.take(shape, target.typeOf(a.dtype));
  try {
    using source = result.storage === a.storage ? copied(a, target) : undefined;
    const from = (source ?? a).view(...a.shape.map(() => undefined));
    // Each turn doubles what is there, so the number of copies is logarithmic in the counts.
    if (result.length > 0) fillTiles(result, from, extents, repeats, target);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result as Result<O, TypeOf<A>>;
}

function fillTiles(result: DeviceArray, from: DeviceArray, extents: readonly number[], repeats: readonly number[], target: Target): void {
  const rank = extents.length;
  const filled = [...extents];
  const box = (lows: readonly number[], highs: readonly number[]): DeviceArray =>
    result.view(...lows.map((low, axis) => [low, highs[axis] as number] as const));
  const zeros = extents.map(() => 0);
  const corner = box(zeros, filled);
  moved(
    from.shape.length === rank ? corner : corner.view(...extents.map((_, axis) => (axis < rank - from.shape.length ? 0 : undefined))),
    from,
    target,
  );
  for (let axis = rank - 1; axis >= 0; axis--) {
    const whole = extents[axis]! * repeats[axis]!;
    while (filled[axis]! < whole) {
      const more = Math.min(filled[axis]!, whole - filled[axis]!);
      const lows = zeros.map((low, own) => (own === axis ? filled[axis]! : low));
      const highs = filled.map((high, own) => (own === axis ? high + more : high));
      const sources = filled.map((high, own) => (own === axis ? more : high));
      target.recorder.copy(box(lows, highs), box(zeros, sources));
      filled[axis]! += more;
    }
  }
}

/** Declares, as an i32, the place along an axis that index number `at` names; one of 64 bits that is outside stays outside. */
export function placeOf({ dtype }: DeviceArray, at: string): string {
  const number = dtype === 'u64' ? `i64(min(indices[${at}], 9223372036854775807n))` : `i64(indices[${at}])`;
  return `const number = ${number}; const from = number < 0n ? number + i64(extent) : number; const chosen0 = i32(max(-2147483648n, min(from, 2147483647n)));`;
}

/** Throws ArgumentError for a result with elements of an axis that has none: each number is outside. */
export function checkNotEmpty(name: string, a: DeviceArray, axis: number, indices: DeviceArray, shape: readonly number[]): void {
  if (a.shape[axis] !== 0 || shape.includes(0)) return;
  const message = `The axis ${axis} of ${name} (${a.label}) has no elements, so none of the indices (${indices.label}) names one.`;
  throw badArgument('indices', indices, message, 0);
}

/**
 * The elements with these numbers along an axis, in any shape of numbers: `numpy.take`. Negative numbers count from the end. The operation fails
 * with a BoundsError for a number outside the axis. Throws ArgumentError for indices that are no integers, for an axis without elements, and as
 * every operation does.
 * @example const rows = take(table, indices); // table[indices]
 */
export function take<A extends DeviceArray, const O extends AxisOptions = Record<never, never>>(
  a: A,
  indices: DeviceArray,
  opts?: O,
): Result<O, TypeOf<A>> {
  if (arguments.length > 3) refuseSurplus('take', arguments, 3);
  onlyArrays('take', [a, indices]);
  const target = targetOf('take', opts, [a, indices], ['axis']);
  if (!/^[iu]\d+$/.test(indices.dtype))
    throw badArgument('indices', indices, `The indices of take (${indices.label}) are no integers.`, 'i32');
  const axis = checkAxis(opts?.axis ?? 0, a.shape.length);
  const extent = a.shape[axis] as number;
  const shape = a.shape.toSpliced(axis, 1, ...indices.shape);
  checkNotEmpty('take', a, axis, indices, shape);
  const result = target.take(shape, target.typeOf(a.dtype));
  try {
    if (result.length === 0) return result as Result<O, TypeOf<A>>;
    using rows = a.isContiguous ? undefined : copied(a, target);
    using numbers = indices.isContiguous ? undefined : copied(indices, target);
    const isOwn = result.dtype === a.dtype && result.isContiguous && result.storage !== a.storage && result.storage !== indices.storage;
    using between = isOwn ? undefined : target.temporary(shape, a.dtype);
    const args = new Arguments();
    const inner = a.shape.slice(axis + 1).reduce((product, own) => product * own, 1);
    args.checked('a', (rows ?? a).reshape([a.length / (extent * inner), extent, inner]), 3);
    args.array('indices', numbers ?? indices);
    args.array('y', between ?? result, 'output');
    args.numbers({ extent, inner, chosen: indices.length });
    const body = (): string => `
      const column = i % inner; const rest = idiv(i, inner); const place = rest % chosen; const outer = idiv(rest, chosen);
      ${placeOf(indices, 'place')}
      y[i] = a.at(outer, chosen0, column);`;
    args.launch(target.recorder, 'take', '', { threads: result.length }, 'i', body);
    if (between !== undefined) moved(result, between, target);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result as Result<O, TypeOf<A>>;
}
