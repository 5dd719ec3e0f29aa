// Arrays as rows along one axis: what sorts and scans work on.
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { checkAxis } from './layout.js';
import { astype } from './selection.js';
import type { Target } from './target.js';

/** The array with an axis as its last. */
export function turned(array: DeviceArray, axis: number): DeviceArray {
  const rank = array.shape.length;
  if (axis >= rank - 1) return array;
  return array.transpose([...Array.from({ length: rank }, (_, at) => at).filter((at) => at !== axis), axis]);
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
    const length = a.shape[at] ?? 1;
    const rows = { count: a.length / length, length };
    const [given, wanted] = [turned(a, at), turned(result, at)];
    using own = given.isContiguous ? undefined : copied(given, target);
    if (wanted.isContiguous && result.storage !== a.storage && result.dtype === dtype) {
      work(own ?? given, wanted, rows);
      return result;
    }
    using between = target.temporary(given.shape, dtype);
    work(own ?? given, between, rows);
    moved(wanted, between, target);
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
