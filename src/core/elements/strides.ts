// The layout of an array: the extent and the stride of each axis, counted in elements.
//
// The rules are NumPy's: the stride of an axis of extent 0 or 1 has no effect, an array without elements is contiguous, and
// strides may be negative.
import { badArgument, checkInteger, entriesOf, show } from '../base/arguments.js';

/**
 * The index of one axis in `array.view`: undefined keeps it, a number selects one element and drops it, [start, stop, step] is Python's
 * slice.
 */
export type AxisIndex = number | readonly [start?: number | undefined, stop?: number | undefined, step?: number | undefined] | undefined;

export interface Layout {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/** A layout and its first element. */
export interface Placed extends Layout {
  readonly offset: number;
}

/** Row-major: the last axis is the fastest. */
export function contiguousStrides(shape: readonly number[]): number[] {
  const strides: number[] = [];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(shape[axis] as number, 1);
  }
  return strides;
}

export function isContiguous({ shape, strides }: Layout): boolean {
  let expected = 1;
  let isRegular = true;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis] as number;
    if (extent === 0) return true;
    if (extent > 1 && strides[axis] !== expected) isRegular = false;
    expected *= extent;
  }
  return isRegular;
}

/** The range of element offsets relative to the first element: `low` is at most 0, `high` is the last offset plus 1. */
export function reachOf({ shape, strides }: Layout): readonly [low: number, high: number] {
  let low = 0;
  let high = 1;
  for (const [axis, extent] of shape.entries()) {
    if (extent === 0) return [0, 0];
    const span = (extent - 1) * (strides[axis] as number);
    if (span < 0) low += span;
    else high += span;
  }
  return [low, high];
}

/** The elements that an index list selects; it keeps the axes that the list does not mention. */
export function indexed({ shape, strides }: Layout, index: readonly unknown[]): Placed {
  if (index.length > shape.length) {
    const message = `The number of indices (${index.length}) exceeds the number of dimensions (${shape.length}).`;
    throw badArgument('index', index, message, shape.length);
  }
  const kept: { extent: number; stride: number }[] = [];
  let offset = 0;
  for (const [axis, extent] of shape.entries()) {
    const stride = strides[axis] as number;
    const at = index[axis];
    if (at === undefined) {
      kept.push({ extent, stride });
    } else if (Array.isArray(at)) {
      const slice = sliced(at, extent, axis);
      offset += slice.start * stride;
      kept.push({ extent: slice.count, stride: stride * slice.step });
    } else {
      const whole = checkInteger(`index of dimension ${axis}`, at, -extent, extent - 1);
      offset += (whole < 0 ? whole + extent : whole) * stride;
    }
  }
  // Without elements, at the start, so that the offset stays inside the array.
  const isEmpty = kept.some(({ extent }) => extent === 0);
  return {
    offset: isEmpty ? 0 : offset,
    shape: kept.map(({ extent }) => extent),
    strides: kept.map(({ stride }) => stride),
  };
}

/** Python's slice.indices(extent), with the number of elements. */
function sliced(slice: readonly unknown[], extent: number, axis: number): { start: number; count: number; step: number } {
  if (slice.length > 3) throw badArgument('index', slice, `The slice of dimension ${axis} (${show(slice)}) has more than 3 entries.`, 3);
  const [start, stop, step] = ['start', 'stop', 'step'].map((name, at) => {
    const value = slice[at];
    return value === undefined ? undefined : checkInteger(`${name} of dimension ${axis}`, value, Number.MIN_SAFE_INTEGER);
  });
  const by = step ?? 1;
  if (by === 0) throw badArgument('index', slice, `The step of dimension ${axis} (0) must not be 0.`);
  const least = by > 0 ? 0 : -1;
  const most = by > 0 ? extent : extent - 1;
  const bound = (value: number): number => (value < 0 ? Math.max(value + extent, least) : Math.min(value, most));
  const from = start === undefined ? (by > 0 ? least : most) : bound(start);
  const to = stop === undefined ? (by > 0 ? most : least) : bound(stop);
  const count = Math.max(0, Math.ceil((to - from) / by));
  return { start: from, count, step: by };
}

/** The axes in another order; the default is the reverse order. */
export function transposed({ shape, strides }: Layout, axes: unknown): Layout {
  const rank = shape.length;
  const order = axes === undefined ? shape.map((_, axis) => rank - 1 - axis) : checkPermutation(axes, rank);
  return { shape: order.map((axis) => shape[axis] as number), strides: order.map((axis) => strides[axis] as number) };
}

function checkPermutation(axes: unknown, rank: number): number[] {
  if (!Array.isArray(axes) || axes.length !== rank) {
    throw badArgument('axes', axes, `The axes (${show(axes)}) do not name each of the ${rank} dimensions once.`, rank);
  }
  const order = entriesOf(axes, rank).map((axis) => {
    const whole = checkInteger('axis', axis, -rank, rank - 1);
    return whole < 0 ? whole + rank : whole;
  });
  if (new Set(order).size !== rank) {
    throw badArgument('axes', axes, `The axes (${show(axes)}) do not name each of the ${rank} dimensions once.`, rank);
  }
  return order;
}

/**
 * The strides of the same elements, in the same order, in another shape with as many elements; undefined if no strides give that order.
 * Runs of old and new axes with the same number of elements match each other. Within a run the old axes must be evenly spaced.
 */
export function reshapedStrides(from: Layout, shape: readonly number[]): number[] | undefined {
  if (isContiguous(from)) return contiguousStrides(shape);
  // Axes of extent 1 have no effect.
  const old = from.shape.map((extent, axis) => ({ extent, stride: from.strides[axis] as number })).filter(({ extent }) => extent !== 1);
  const strides: number[] = shape.map(() => 1);
  let axis = shape.length;
  let last = old.length;
  while (last > 0) {
    // Find the shortest run of old axes, from the fastest, that has as many elements as a run of new axes.
    const { stride } = old[last - 1] as { stride: number };
    let oldCount = 1;
    let newCount = 1;
    do {
      if (oldCount <= newCount) {
        const next = old[--last] as { extent: number; stride: number };
        if (next.stride !== stride * oldCount) return undefined;
        oldCount *= next.extent;
      } else {
        strides[--axis] = stride * newCount;
        newCount *= shape[axis] as number;
      }
    } while (oldCount !== newCount);
  }
  return strides;
}
