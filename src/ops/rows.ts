// Arrays as rows along one axis: what sorts and scans work on.
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { checkAxis } from './layout.js';
import { astype } from './selection.js';
import type { Target } from './target.js';

/** The axes in the order in which `axis` is the last, and how to undo that. */
export function orders(rank: number, axis: number): readonly [there: number[], back: number[]] {
  const there = [...Array.from({ length: rank }, (_, at) => at).filter((at) => at !== axis), axis];
  return [there, there.map((_, at) => there.indexOf(at))];
}

/** Rows of a contiguous array: `count` rows of `length` elements each. */
export interface Rows {
  readonly count: number;
  readonly length: number;
}

/**
 * Calls `work` with contiguous rows of the elements along an axis, and with contiguous rows of the same shape for the results, of type `dtype`, and
 * brings the results to their places, as another type if the options name one. Both belong to this call.
 */
export function alongAxis(
  a: DeviceArray,
  axis: number,
  dtype: DType,
  target: Target,
  work: (from: DeviceArray, to: DeviceArray, rows: Rows) => void,
): DeviceArray {
  const rank = a.shape.length;
  const at = checkAxis(axis, Math.max(1, rank));
  const result = target.take(a.shape, target.typeOf(dtype));
  try {
    if (result.length === 0) return result;
    const [there] = orders(rank, at);
    const length = a.shape[at] ?? 1;
    const rows = { count: a.length / length, length };
    const turned = rank === 0 ? a : a.transpose(there);
    const turnedResult = rank === 0 ? result : result.transpose(there);
    using own = turned.isContiguous ? undefined : copied(turned, target);
    if (turnedResult.isContiguous && result.storage !== a.storage && result.dtype === dtype) {
      work(own ?? turned, turnedResult, rows);
      return result;
    }
    using between = target.temporary(turned.shape, dtype);
    work(own ?? turned, between, rows);
    moved(turnedResult, between, target);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result;
}

/** Copies an array to a part of the result, of another type if need be. */
export function moved(part: DeviceArray, array: DeviceArray, { recorder }: Target): void {
  if (part.dtype === array.dtype) recorder.copy(part, array);
  else astype(array, part.dtype, { out: part, stream: recorder });
}

/** Fills an array with zeros. */
export function zeroed(array: DeviceArray, { recorder }: Target): void {
  recorder.fill(array as DeviceArray<'f32'>, (array.dtype === 'i64' || array.dtype === 'u64' ? 0n : 0) as never);
}

/** A contiguous copy, which the operation disposes. */
export function copied(array: DeviceArray, target: Target): DeviceArray {
  const copy = target.temporary(array.shape, array.dtype);
  try {
    target.recorder.copy(copy, array);
  } catch (error) {
    copy[Symbol.dispose]();
    throw error;
  }
  return copy;
}
