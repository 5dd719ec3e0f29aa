// Reductions in the order of the ranks, by operations of one device.
// Thread: owner.
import type { DeviceArray } from '../core/api/array.js';
import type { Stream } from '../core/api/stream.js';
import { type DType, is16BitFloat } from '../core/elements/dtype.js';
import { add, divide, maximum, minimum, multiply } from '../ops/arithmetic.js';
import { astype } from '../ops/selection.js';
import type { Reduction } from './types.js';

const FOLDS = { sum: add, prod: multiply, min: minimum, max: maximum, mean: add } as const;

/** The reduction of the arrays, which may be on other devices, in a new array of the stream's device, which no scope has. f16 and bf16 are rounded once. */
export function reduced<D extends DType>(stream: Stream, arrays: readonly DeviceArray<D>[], op: Reduction): DeviceArray<D> {
  const [{ shape, dtype }] = arrays as [DeviceArray<D>];
  const wide: DType = is16BitFloat(dtype) ? 'f32' : dtype;
  // Copies on the stream's device, of the type that is added in.
  const nearby = (array: DeviceArray): DeviceArray => {
    const near: DeviceArray = stream.allocate(shape, dtype);
    const copied = stream.copy(near, array);
    // Its failure is that of the result, which is told there. In a capture it has no end of its own.
    if (stream.timeline.recording === undefined) copied.done.catch(() => undefined);
    if (wide === dtype) return near;
    using narrow = near;
    return astype(narrow, wide, { stream, out: stream.allocate(shape, wide) });
  };
  const sum = nearby(arrays[0]!);
  for (const array of arrays.slice(1)) {
    using near = nearby(array);
    FOLDS[op](sum, near, { stream, out: sum });
  }
  if (op === 'mean') divide(sum, arrays.length, { stream, out: sum });
  if (wide === dtype) return sum as DeviceArray<D>;
  using all = sum;
  return astype(all, dtype, { stream, out: stream.allocate(shape, dtype) });
}
