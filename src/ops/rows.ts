// Arrays as rows along one axis: what sorts and scans work on.
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { checkAxis } from './layout.js';
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
 * Calls `work` with contiguous rows of the elements along an axis, and with contiguous rows of the same shape for the results, and brings the
 * results to their places. Both belong to this call.
 */
export function alongAxis(
  a: DeviceArray,
  axis: number,
  dtype: DType,
  target: Target,
  work: (from: DeviceArray, to: DeviceArray, rows: Rows) => void,
): DeviceArray {
  const rank = a.shape.length;
  const result = target.take(a.shape, dtype);
  try {
    if (result.length === 0) return result;
    const at = rank === 0 ? 0 : checkAxis(axis, rank);
    const [there] = orders(rank, at);
    const length = a.shape[at] ?? 1;
    const rows = { count: a.length / length, length };
    const turned = rank === 0 ? a : a.transpose(there);
    const turnedResult = rank === 0 ? result : result.transpose(there);
    using own = turned.isContiguous ? undefined : copied(turned, target);
    if (turnedResult.isContiguous && result.storage !== a.storage) {
      work(own ?? turned, turnedResult, rows);
      return result;
    }
    using between = target.temporary(turned.shape, dtype);
    work(own ?? turned, between, rows);
    target.recorder.copy(turnedResult, between);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result;
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
