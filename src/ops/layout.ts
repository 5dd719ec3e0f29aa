// How the elements of several arrays lie beside each other: broadcasting, and the fewest axes that reach them all.
import { badArgument, show } from '../core/base/arguments.js';
import type { Layout } from '../core/elements/strides.js';

/** The shape that all of these broadcast to, by NumPy's rule: axes are aligned at the end, and an extent of 1 repeats. */
export function broadcastShape(name: string, shapes: readonly (readonly number[])[]): readonly number[] {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let extent = 1;
    for (const shape of shapes) {
      const own = shape[axis - rank + shape.length] ?? 1;
      if (own === extent || own === 1) continue;
      if (extent !== 1) {
        const message = `The shapes of ${name} (${shapes.map((one) => show([...one])).join(', ')}) do not broadcast: dimension ${axis} has ${extent} and ${own} elements.`;
        throw badArgument('shape', shape, message, extent);
      }
      extent = own;
    }
    return extent;
  });
}

/** The strides of an array along the axes of a shape that it broadcasts to. */
export function broadcastStrides({ shape: own, strides }: Layout, shape: readonly number[]): number[] {
  return shape.map((_, axis) => {
    const at = axis - shape.length + own.length;
    return at < 0 || own[at] === 1 ? 0 : (strides[at] as number);
  });
}

/** Axes of one extent each, and the stride of each array along each of them. */
export interface Axes {
  readonly extents: readonly number[];
  readonly strides: readonly (readonly number[])[];
}

/** Joins axes that lie in one line for all arrays, and leaves out those of extent 1. */
export function joined({ extents, strides }: Axes): Axes {
  const kept: number[] = [];
  const steps: number[][] = strides.map(() => []);
  for (const [axis, extent] of extents.entries()) {
    if (extent === 1) continue;
    const last = kept.length - 1;
    const joins = last >= 0 && strides.every((own, at) => steps[at]![last] === own[axis]! * extent);
    if (joins) kept[last]! *= extent;
    else kept.push(extent);
    for (const [at, own] of strides.entries()) steps[at]![kept.length - 1] = own[axis]!;
  }
  return { extents: kept, strides: steps };
}

/** Whether two shapes, or lists of strides or axes, are the same. */
export function isSameList(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (a[axis] !== b[axis]) return false;
  return true;
}

/** Whether the elements of two layouts have the same places. */
export function isSameLayout(a: Layout, b: Layout): boolean {
  return (
    a.shape.length === b.shape.length &&
    a.shape.every((extent, axis) => b.shape[axis] === extent && (extent === 1 || a.strides[axis] === b.strides[axis]))
  );
}

/** An axis of an array of `rank` dimensions, counted from the end if negative. */
export function checkAxis(value: unknown, rank: number): number {
  const isAxis = typeof value === 'number' && Number.isInteger(value) && value >= -rank && value < rank;
  if (!isAxis && rank === 0) throw badArgument('axis', value, `The axis (${show(value)}) is none of the array's, which has no dimensions.`);
  if (!isAxis)
    throw badArgument(
      'axis',
      value,
      `The axis (${show(value)}) is none of the array's ${rank} dimensions (${-rank} to ${rank - 1}).`,
      rank - 1,
    );
  return value < 0 ? value + rank : value;
}
