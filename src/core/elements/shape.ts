// Shapes: the number of elements along each dimension of an array, and the checks of shape arguments.
import { MAX_RANK } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, entriesOf, show } from '../base/arguments.js';
import { DTYPES, type DType } from './dtype.js';

/** The sizes of the dimensions in row-major order (the last one varies fastest); a number is one dimension. `ndarray.shape`. */
export type Shape = number | readonly number[];

/** A shape as a frozen list of dimensions. */
export function checkShape(shape: unknown): readonly number[] {
  const dimensions: unknown[] = Array.isArray(shape) ? entriesOf(shape, MAX_RANK + 1) : [shape];
  if (dimensions.length > MAX_RANK) {
    const { length } = shape as readonly unknown[];
    throw badArgument('shape', shape, `The number of dimensions (${length}) exceeds the limit (${MAX_RANK}).`, MAX_RANK);
  }
  return Object.freeze(dimensions.map((dimension) => checkInteger(Array.isArray(shape) ? 'dimension' : 'length', dimension, 0)));
}

export function lengthOf(shape: readonly number[]): number {
  let length = 1;
  for (const dimension of shape) length *= dimension;
  return length;
}

/** The bytes of an array of this shape. Throws ArgumentError if they exceed the device's memory. */
export function checkBytes(shape: readonly number[], dtype: DType, limitBytes: number, device: string): number {
  const bytes = lengthOf(shape) * DTYPES[dtype].byteSize;
  if (bytes > limitBytes) {
    throw badArgument(
      'shape',
      shape,
      `The array's size (${bytes} bytes) exceeds the memory of device ${device} (${limitBytes} bytes).`,
      limitBytes,
    );
  }
  return bytes;
}

/** A new shape for the same number of elements. */
export function checkReshape(shape: Shape, length: number): readonly number[] {
  const checked = checkShape(shape);
  if (lengthOf(checked) !== length) {
    throw badArgument('shape', shape, `The shape (${show(checked)}) has ${lengthOf(checked)} elements; the data has ${length}.`, length);
  }
  return checked;
}

/** Python's rules for a range of a dimension: a negative index counts from the end, an index out of range is clamped. */
export function clampRange(start: number, end: number | undefined, length: number): readonly [start: number, end: number] {
  const from = clampIndex(checkInteger('start', start, Number.MIN_SAFE_INTEGER), length);
  const to = end === undefined ? length : clampIndex(checkInteger('end', end, Number.MIN_SAFE_INTEGER), length);
  return [from, Math.max(from, to)];
}

function clampIndex(index: number, length: number): number {
  return index < 0 ? Math.max(0, index + length) : Math.min(index, length);
}
