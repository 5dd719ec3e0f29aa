// Arrays of a device with any strides, made of random slices and transpositions, and where each of their elements lies in plain numbers.
import type { Device, DeviceArray, DType } from 'millrace';
import { cast, decoded, encoded, type HostArray, type Range, randomValue, type Value } from './element-model.js';

type Random = (below: number) => number;

/** An array, and what it holds. `at`: the places of its elements in the base, in the order of its shape. */
export interface Held {
  readonly array: DeviceArray;
  readonly base: DeviceArray;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly at: readonly number[];
  readonly whole: Value[];
}

export const countOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
export const valuesOf = ({ at, whole }: Held): Value[] => at.map((n) => whole[n]!);

/** How an array lies: in one line, or in random slices of a random order of axes. */
export type Layout = 'line' | 'view';

/** Small extents, and by `pattern` an empty axis, one of 1, or a long one. */
export function randomShape(random: Random, rank: number, pattern = random): number[] {
  const kind = pattern(12);
  const shape = Array.from({ length: rank }, () => 2 + random(4));
  if (rank === 0 || kind < 8) return shape;
  if (kind === 8) return shape.map(() => random(4));
  shape[pattern(rank)] = kind === 9 ? 0 : kind === 10 ? 1 : 65 + random(90);
  return shape;
}

/** Places of the elements of a shape with these strides, in the order of the shape. */
export function places(shape: readonly number[], strides: readonly number[], offset = 0): number[] {
  let all = [offset];
  for (const [axis, extent] of shape.entries()) {
    const next: number[] = [];
    for (const start of all) for (let n = 0; n < extent; n++) next.push(start + n * strides[axis]!);
    all = next;
  }
  return all;
}

export function stridesOf(shape: readonly number[]): number[] {
  return shape.map((_, axis) => countOf(shape.slice(axis + 1)));
}

export interface HeldOptions {
  readonly range?: Range;
  /** What becomes of each random value. */
  readonly change?: (value: Value) => Value;
  /** Chooses slices and order, where these are to be the same for other values. */
  readonly pattern?: Random;
}

/** A random array of this shape. */
export function randomHeld(
  device: Device,
  random: Random,
  dtype: DType,
  shape: readonly number[],
  layout: Layout,
  opts: HeldOptions = {},
): Held {
  const { range = 'any', change = (value: Value): Value => value, pattern = random } = opts;
  const rank = shape.length;
  const order = shape.map((_, axis) => axis);
  if (layout === 'view') for (let n = rank - 1; n > 0; n--) swap(order, n, pattern(n + 1));
  const base = Array<number>(rank).fill(0);
  const slices: [start: number, stop: number | undefined, step: number][] = [];
  for (const [axis, source] of order.entries()) {
    const extent = shape[axis]!;
    const [step, before, after] = layout === 'line' ? [1, 0, 0] : [[1, 1, 2, -1, -2, 3][pattern(6)]!, pattern(2), pattern(2)];
    const length = extent === 0 ? 0 : (extent - 1) * Math.abs(step) + 1;
    base[source] = before + length + after;
    if (extent === 0) slices[source] = [before, before, 1];
    else if (step > 0) slices[source] = [before, before + length, step];
    else slices[source] = [before + length - 1, before === 0 ? undefined : before - 1, step];
  }
  const whole = Array.from({ length: countOf(base) }, () => change(randomValue(dtype, range, random)));
  const made = device.from(encoded(dtype, whole) as never, { shape: base, dtype }) as unknown as DeviceArray;
  const steps = stridesOf(base);
  const offset = slices.reduce((sum, [start], axis) => sum + start * steps[axis]!, 0);
  const strides = order.map((source) => steps[source]! * slices[source]![2]);
  const array = layout === 'line' ? made : made.view(...slices).transpose(order);
  return { array, base: made, dtype, shape, at: places(shape, strides, offset), whole };
}

function swap(list: number[], a: number, b: number): void {
  [list[a], list[b]] = [list[b]!, list[a]!];
}

/** The shape with some extents of 1, and without some of the first axes, which broadcasts to it. */
export function narrowedShape(random: Random, shape: readonly number[]): number[] {
  const kept = shape.slice(random(3) === 0 ? random(shape.length + 1) : 0);
  return kept.map((extent) => (random(3) === 0 ? 1 : extent));
}

/** The values of a broadcast array, in the order of the larger shape. */
export function broadcastValues(values: readonly Value[], shape: readonly number[], to: readonly number[]): Value[] {
  const own = stridesOf(shape);
  const strides = to.map((_, axis) => {
    const from = axis - (to.length - shape.length);
    return from < 0 || shape[from] === 1 ? 0 : own[from]!;
  });
  return places(to, strides).map((n) => values[n]!);
}

export function broadcastShape(shapes: readonly (readonly number[])[]): number[] {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const extents = shapes.map((shape) => shape[axis - (rank - shape.length)] ?? 1);
    return extents.find((extent) => extent !== 1) ?? 1;
  });
}

/** What an array holds now, in its order. */
export async function readValues(array: DeviceArray): Promise<Value[]> {
  return decoded(array.dtype, (await array.read()) as unknown as HostArray);
}

export const castAll = (values: readonly Value[], to: DType): Value[] => values.map((value) => cast(value, to));
