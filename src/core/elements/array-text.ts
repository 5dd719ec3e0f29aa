// Arrays as text, as NumPy prints them, and as nested lists.
import { badArgument, show } from '../base/arguments.js';
import type { DType, HostArray, HostValue } from './dtype.js';
import { type FloatDType, floatText, floatTexts, type FloatStyle } from './float-text.js';
import { elementValue } from './scalar-bits.js';

/** A value, or lists of values in lists: `ndarray.tolist()`. */
export type Nested<T> = T | Nested<T>[];

/** Lists in lists, as many as an array has dimensions. */
export type NestedOf<T, R extends Rank | undefined> = R extends 0
  ? T
  : R extends 1
    ? T[]
    : R extends 2
      ? T[][]
      : R extends 3
        ? T[][][]
        : R extends 4
          ? T[][][][]
          : Nested<T>;
type Rank = 0 | 1 | 2 | 3 | 4;
/** Options of `list`. */
export interface ListOptions<R extends Rank | undefined = Rank | undefined> {
  /** How many dimensions the array has, for the type of the result. An array of another number is refused. */
  readonly rank?: R;
}

/** Throws ArgumentError unless the array has as many dimensions as the options of `list` say. */
export function checkRank({ rank }: ListOptions = {}, shape: readonly number[]): void {
  if (rank === undefined || rank === shape.length) return;
  const message = `The rank (${show(rank)}) is not the number of dimensions of the array (${shape.length}).`;
  throw badArgument('rank', rank, message, shape.length);
}

type Element = number | bigint | boolean;

/** `numpy.printoptions`. */
export interface ArrayStyle extends FloatStyle {
  /** Of arrays with more elements, only the edges are shown. */
  readonly threshold: number;
  /** The elements shown at each end of an axis of such an array. */
  readonly edgeItems: number;
  /** The characters of a line. */
  readonly lineWidth: number;
}

/** The ranges of an axis that are shown: all of it, or both ends. */
export function spansOf(length: number, edge: number): readonly (readonly [start: number, stop: number])[] {
  return length > 2 * edge
    ? [
        [0, edge],
        [length - edge, length],
      ]
    : [[0, length]];
}

/** How many elements of each end of an axis are shown; Infinity: all elements of the array. */
export function edgeOf(shape: readonly number[], { threshold, edgeItems }: ArrayStyle): number {
  return shape.reduce((length, extent) => length * extent, 1) > threshold ? edgeItems : Infinity;
}

/** The elements of typed memory that are shown, in flat order. */
export function shownOf(dtype: DType, shape: readonly number[], host: HostArray, style: ArrayStyle): Element[] {
  const edge = edgeOf(shape, style);
  if (edge === Infinity) return elementsOf(dtype, host);
  const shown: Element[] = [];
  const take = (axis: number, at: number): void => {
    if (axis === shape.length) shown.push(elementValue(dtype, host[at] as number | bigint));
    else
      for (const [start, stop] of spansOf(shape[axis] as number, edge))
        for (let n = start; n < stop; n++) take(axis + 1, at * (shape[axis] as number) + n);
  };
  take(0, 0);
  return shown;
}

/** The text of an array of this shape. `shown` has the elements of the ranges that are shown, in flat order. */
export function textOf(dtype: DType, shape: readonly number[], shown: readonly Element[], style: ArrayStyle): string {
  if (shape.length === 0) return scalarText(dtype, shown[0] as Element);
  if (shape.includes(0)) return '[]';
  const texts = textsOf(dtype, shown, style);
  const edge = edgeOf(shape, style);
  let at = 0;
  const rows = (axis: number): string => {
    const indent = ' '.repeat(axis + 1);
    const isLast = axis === shape.length - 1;
    const items = spansOf(shape[axis] as number, edge).map(([start, stop]) =>
      Array.from({ length: stop - start }, () => (isLast ? (texts[at++] as string) : rows(axis + 1))),
    );
    const all = items.length === 1 ? (items[0] as string[]) : [...(items[0] as string[]), '...', ...(items[1] as string[])];
    // Rows of the last axis have a bracket at the end for each axis.
    const text = isLast ? lines(all, indent, style.lineWidth - shape.length) : all.join('\n'.repeat(shape.length - 1 - axis) + indent);
    return `[${text}]`;
  };
  return rows(0);
}

/** The words of one row, in lines of at most `width` characters. A line has at least one word. */
function lines(words: readonly string[], indent: string, width: number): string {
  let text = '';
  let line = indent;
  for (const [at, word] of words.entries()) {
    const isFull = line.length + word.length > width && line.length > indent.length;
    if (isFull) {
      text += `${line.trimEnd()}\n`;
      line = indent;
    }
    line += at === words.length - 1 ? word : `${word} `;
  }
  return (text + line).slice(indent.length);
}

function textsOf(dtype: DType, shown: readonly Element[], style: ArrayStyle): readonly string[] {
  if (isFloat(dtype)) return floatTexts(dtype, shown as readonly number[], style);
  const texts = shown.map((value) => scalarText(dtype, value));
  const width = dtype === 'bool' ? 5 : texts.reduce((longest, text) => Math.max(longest, text.length), 0);
  return texts.map((text) => text.padStart(width));
}

function scalarText(dtype: DType, value: Element): string {
  if (isFloat(dtype)) return floatText(dtype, value as number);
  return dtype === 'bool' ? (value === true ? 'True' : 'False') : String(value);
}

function isFloat(dtype: DType): dtype is FloatDType {
  return dtype === 'f16' || dtype === 'bf16' || dtype === 'f32' || dtype === 'f64';
}

/** The elements of typed memory as JavaScript values. */
export function elementsOf<D extends DType>(dtype: D, host: HostArray): HostValue<D>[] {
  if (dtype === 'bool' || dtype === 'f16' || dtype === 'bf16')
    return Array.from(host as Uint16Array, (element) => elementValue<D>(dtype, element));
  return Array.from(host as Uint16Array) as HostValue<D>[];
}

/** The elements of typed memory as nested lists of this shape. */
export function nestedOf<D extends DType>(dtype: D, shape: readonly number[], host: HostArray): Nested<HostValue<D>> {
  const make = (axis: number, start: number, length: number): Nested<HostValue<D>> => {
    if (axis >= shape.length - 1) return elementsOf(dtype, host.subarray(start, start + length));
    const extent = shape[axis] as number;
    const step = length / extent;
    return Array.from({ length: extent }, (_, at) => make(axis + 1, start + at * step, step));
  };
  return shape.length === 0 ? (elementsOf(dtype, host)[0] as HostValue<D>) : make(0, 0, host.length);
}
