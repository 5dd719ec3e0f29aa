// A model of strided views: plain arrays with the shapes and slices of Python, written down once more so that the library
// is compared with something that knows nothing of it.

export type Slice = number | readonly [start?: number | undefined, stop?: number | undefined, step?: number | undefined] | undefined;

/** Offsets, in elements of the base, of a view's elements in the order of its shape. */
export interface ViewModel {
  readonly shape: readonly number[];
  readonly at: readonly number[];
}

export function modelOf(shape: readonly number[]): ViewModel {
  return { shape, at: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, n) => n) };
}

/** Python's range(*slice(start, stop, step).indices(length)). */
export function indicesOf(slice: Exclude<Slice, number>, length: number): number[] {
  const [start, stop, step = 1] = slice ?? [];
  const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value < 0 ? value + length : value, low), high);
  const indices: number[] = [];
  if (step > 0) {
    const end = stop === undefined ? length : clip(stop, 0, length);
    for (let n = start === undefined ? 0 : clip(start, 0, length); n < end; n += step) indices.push(n);
  } else {
    const end = stop === undefined ? -1 : clip(stop, -1, length - 1);
    for (let n = start === undefined ? length - 1 : clip(start, -1, length - 1); n > end; n += step) indices.push(n);
  }
  return indices;
}

export function viewOf(model: ViewModel, ...index: readonly Slice[]): ViewModel {
  const axes = model.shape.map((length, axis) => {
    const slice = index[axis];
    return typeof slice === 'number' ? [slice < 0 ? slice + length : slice] : indicesOf(slice, length);
  });
  return { shape: axes.flatMap((indices, axis) => (typeof index[axis] === 'number' ? [] : [indices.length])), at: pick(model, axes) };
}

export function transposed(model: ViewModel, axes: readonly number[] = model.shape.map((_, n) => model.shape.length - 1 - n)): ViewModel {
  const shape = axes.map((axis) => model.shape[axis]!);
  const at = everyIndex(shape).map((index) => {
    const source = model.shape.map(() => 0);
    for (const [to, axis] of axes.entries()) source[axis] = index[to]!;
    return model.at[flat(model.shape, source)]!;
  });
  return { shape, at };
}

export function everyIndex(shape: readonly number[]): number[][] {
  return shape.reduce<number[][]>((all, length) => all.flatMap((head) => Array.from({ length }, (_, n) => [...head, n])), [[]]);
}

function pick(model: ViewModel, axes: readonly (readonly number[])[]): number[] {
  return axes
    .reduce<number[][]>((all, indices) => all.flatMap((head) => indices.map((n) => [...head, n])), [[]])
    .map((index) => model.at[flat(model.shape, index)]!);
}

function flat(shape: readonly number[], index: readonly number[]): number {
  return index.reduce((sum, n, axis) => sum * shape[axis]! + n, 0);
}
