// Divides a range of elements in row-major order into boxes: parts of an array that `view` can name.
import type { AxisIndex } from './strides.js';

export interface Box {
  /** One entry for each axis; a number drops its axis. */
  readonly index: readonly AxisIndex[];
  readonly length: number;
}

/** The elements from `from` to `to` (exclusive) in row-major order: at least one box, at most two per axis. */
export function boxesOf(shape: readonly number[], from: number, to: number): Box[] {
  const [, ...rest] = shape;
  if (rest.length === 0) return [{ index: shape.length === 0 ? [] : [[from, to]], length: to - from }];
  const inner = rest.reduce((product, extent) => product * extent, 1);
  const row = (at: number, first: number, end: number): Box[] =>
    boxesOf(rest, first, end).map(({ index, length }) => ({ index: [at, ...index], length }));
  const [firstRow, lastRow] = [Math.floor(from / inner), Math.floor(to / inner)];
  const [before, after] = [from - firstRow * inner, to - lastRow * inner];
  if (firstRow === lastRow) return row(firstRow, before, after);
  const boxes = before === 0 ? [] : row(firstRow, before, inner);
  const whole = before === 0 ? firstRow : firstRow + 1;
  if (whole < lastRow) boxes.push({ index: [[whole, lastRow]], length: (lastRow - whole) * inner });
  if (after > 0) boxes.push(...row(lastRow, 0, after));
  return boxes;
}
