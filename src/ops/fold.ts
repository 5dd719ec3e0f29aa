// Folds the elements along some axes into one value each: sums, extremes, and where they are.
//
// Long folds take two kernels: each block or thread folds a part, and the second kernel folds the parts. What is a part depends on the shape
// and the strides only, so a fold gives the same bits whenever it runs.
import type { DeviceArray } from '../core/api/array.js';
import { type DType, i32, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { input, type Kernel, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { castText, placesIn } from './fused.js';
import { broadcastStrides, joined } from './layout.js';
import type { Target } from './target.js';

/** How elements are folded, for one choice of types. Texts are in the kernel language. */
export interface Fold {
  readonly name: string;
  /** Distinguishes it from other folds. */
  readonly key: string;
  /** The values `v0`, `v1` that a fold carries: their types, and what they are before the first element. */
  readonly carried: readonly { readonly type: ScalarType; readonly init: string }[];
  /** Statements that take `a0`, `a1` into `v0`, `v1`. */
  readonly combine: string;
  /** The values of one element, given the texts of the operands' elements and of its number along the axes. */
  leaf(elements: readonly string[], number: string): readonly string[];
  /** The result, and its type. `count`: how many elements it is of. */
  finish(count: string): string;
  readonly result: ScalarType;
}

/** Threads of a block that folds one row, or a part of one. */
const BLOCK = 256;
/** Fewer elements than these are folded by one thread. */
const LEAST_ROW = 64;
/** The elements of a part: a block's threads then fold 64 each. */
const PART = BLOCK * 64;
/** The parts of one fold: several blocks for each multiprocessor of the largest GPU. */
const MOST_PARTS = 1024;
/** The threads that fold columns: enough for a GPU. */
const COLUMN_THREADS = 2 ** 16;
/** CUDA's limit of blocks along y. */
const MOST_BLOCKS_Y = 65535;

const kernels: Map<string, Kernel> = new Map();

/** What one kernel reads: an array, and its strides along the axes that stay and along those that are folded. */
interface Source {
  readonly array: DeviceArray;
  readonly kept: readonly number[];
  readonly folded: readonly number[];
}
interface Axes {
  readonly kept: readonly number[];
  readonly folded: readonly number[];
}

/** Submits a fold of operands, broadcast to `shape`, along `axes` into `result`, which is contiguous. */
export function submitFold(
  fold: Fold,
  operands: readonly DeviceArray[],
  shape: readonly number[],
  axes: readonly number[],
  result: DeviceArray,
  target: Target,
): void {
  const part = (isFolded: boolean): { extents: readonly number[]; strides: readonly (readonly number[])[] } => {
    const chosen = shape.map((_, axis) => axis).filter((axis) => axes.includes(axis) === isFolded);
    return joined({
      extents: chosen.map((axis) => shape[axis] as number),
      strides: operands.map((operand) => chosen.map((axis) => broadcastStrides(operand, shape)[axis] as number)),
    });
  };
  const [kept, folded] = [part(false), part(true)];
  const sources = operands.map((array, at) => ({ array, kept: kept.strides[at]!, folded: folded.strides[at]! }));
  const count = lengthOf(folded.extents);
  const outputs = lengthOf(kept.extents);
  // The threads of a block read neighbours: along the row if the folded axis is the fastest, else along the results.
  const step = (strides: readonly number[]): number => Math.abs(strides.at(-1) ?? Infinity);
  const isRow = count >= LEAST_ROW && step(sources[0]!.folded) <= step(sources[0]!.kept);
  const parts = isRow
    ? Math.min(Math.max(1, Math.ceil(count / PART)), Math.max(1, Math.floor(MOST_PARTS / outputs)))
    : Math.min(Math.max(1, Math.ceil(count / LEAST_ROW)), Math.max(1, Math.floor(COLUMN_THREADS / outputs)), MOST_PARTS);
  const extents = { kept: kept.extents, folded: folded.extents };
  if (parts === 1) {
    submitStage(fold, { sources, isLeaf: true, extents, isRow, parts, total: count }, [result], true, target);
    return;
  }
  const partials = fold.carried.map(({ type }) => target.temporary(isRow ? [outputs, parts] : [parts, outputs], type as DType));
  try {
    submitStage(fold, { sources, isLeaf: true, extents, isRow, parts, total: count }, partials, false, target);
    const [keptStride, foldedStride] = isRow ? [parts, 1] : [1, outputs];
    const second = partials.map((array) => ({ array, kept: [keptStride], folded: [foldedStride] }));
    const isRowAgain = isRow && parts >= LEAST_ROW;
    submitStage(
      fold,
      { sources: second, isLeaf: false, extents: { kept: [outputs], folded: [parts] }, isRow: isRowAgain, parts: 1, total: count },
      [result],
      true,
      target,
    );
  } finally {
    for (const partial of partials) partial[Symbol.dispose]();
  }
}

interface Stage {
  readonly sources: readonly Source[];
  /** Whether the sources are operands, not values that are carried. */
  readonly isLeaf: boolean;
  readonly extents: Axes;
  readonly isRow: boolean;
  readonly parts: number;
  /** The elements that a result is of. */
  readonly total: number;
}

function submitStage(fold: Fold, stage: Stage, into: readonly DeviceArray[], isLast: boolean, { recorder }: Target): void {
  const { sources, isLeaf, extents, isRow, parts, total } = stage;
  const count = lengthOf(extents.folded);
  const outputs = lengthOf(extents.kept);
  const params: Record<string, Param> = {};
  const args: Record<string, unknown> = {};
  const give = (name: string, param: Param, value: unknown): void => {
    params[name] = param;
    args[name] = value;
  };
  const elements = sources.map(({ array, kept, folded }, at) => {
    const [all, first] = array.span;
    const name = `x${at}`;
    give(name, input(scalarOf(array.dtype)), all);
    const terms: string[] = [];
    if (first !== 0) {
      give(`${name}o`, i32, first);
      terms.push(`${name}o`);
    }
    const add = (strides: readonly number[], place: string): void => {
      for (const [axis, stride] of strides.entries()) {
        if (stride === 0) continue;
        if (stride === 1) terms.push(`${place}${axis}`);
        else {
          give(`${name}${place}${axis}`, i32, stride);
          terms.push(`${place}${axis} * ${name}${place}${axis}`);
        }
      }
    };
    add(kept, 'k');
    add(folded, 'm');
    return { text: `${name}[${terms.join(' + ') || '0'}]`, type: REGISTER_TYPE[array.dtype] };
  });
  for (const [axis, extent] of extents.kept.entries()) if (axis > 0) give(`e${axis}`, i32, extent);
  for (const [axis, extent] of extents.folded.entries()) if (axis > 0) give(`f${axis}`, i32, extent);
  give('count', i32, count);
  give('outputs', i32, outputs);
  give('chunk', i32, Math.ceil(count / parts));
  give('parts', i32, parts);
  give('total', i32, total);
  for (const [at, array] of into.entries()) give(`y${at}`, output(scalarOf(array.dtype)), array.span[0]);
  const key = [
    fold.key,
    isLeaf,
    isLast,
    isRow,
    extents.kept.length,
    extents.folded.length,
    ...elements.map(({ text }) => text),
    ...sources.map(({ array }) => array.dtype),
    ...into.map(({ dtype }) => dtype),
  ].join('|');
  let kernel = kernels.get(key);
  if (kernel === undefined) {
    kernel = kernelOfText(fold.name, params, textOf(fold, stage, elements, Object.keys(params), into, isLast), new Map(), {
      file: undefined,
      line: 0,
    });
    kernels.set(key, kernel);
  }
  const launch = isRow
    ? { grid: [parts, Math.min(outputs, MOST_BLOCKS_Y)] as const, block: BLOCK, label: fold.name }
    : { threads: [parts, outputs], label: fold.name };
  recorder.launch(kernel, launch, args as never);
}

function textOf(
  fold: Fold,
  { isLeaf, isRow, extents }: Stage,
  elements: readonly { readonly text: string; readonly type: ScalarType }[],
  names: readonly string[],
  into: readonly DeviceArray[],
  isLast: boolean,
): string {
  const { carried, combine } = fold;
  const values = isLeaf
    ? fold.leaf(
        elements.map(({ text }) => text),
        'r',
      )
    : elements.map(({ text }) => text);
  const each = (text: (at: number) => string): string => carried.map((_, at) => text(at)).join(' ');
  const start = each((at) => `let v${at} = ${carried[at]!.init};`);
  const step = `${placesIn('r', extents.folded.length - 1, 'm', 'f')} ${each((at) => `const a${at} = ${values[at]};`)} ${combine}`;
  // No sum of these exceeds the elements, of which there may be as many as an i32 holds.
  const bounds = (part: string): string => `const from = ${part} * chunk; const size = min(chunk, count - from);`;
  const stored = (place: string): string =>
    into
      .map((array, at) => {
        const [text, type] = isLast ? [fold.finish('total'), fold.result] : [`v${at}`, carried[at]!.type];
        return `y${at}[${place}] = ${castText(`(${text})`, type, REGISTER_TYPE[array.dtype])};`;
      })
      .join(' ');
  const casts = 'idiv, min, i32, u32, i64, u64, f32, f64';
  const args = `({ ${names.join(', ')} }`;
  const kept = placesIn('o', extents.kept.length - 1, 'k', 'e');
  if (!isRow) {
    return `${args}, { i, j, ${casts} }) => { const o = j; ${kept} ${bounds('i')} ${start}
      for (let n = 0; n < size; n++) { const r = from + n; ${step} } ${stored('i * outputs + o')} }`;
  }
  const pair = each((at) => `let v${at} = s${at}[t]; const a${at} = s${at}[t + half];`);
  return `${args}, { threadIdx, blockIdx, gridDim, shared, syncthreads, ${casts} }) => {
    ${each((at) => `const s${at} = shared('${carried[at]!.type}', ${BLOCK});`)}
    const t = threadIdx.x; const part = blockIdx.x; ${bounds('part')}
    for (let o = blockIdx.y; o < outputs; o += gridDim.y) {
      ${kept} ${start}
      for (let n = t; n < size; n += ${BLOCK}) { const r = from + n; ${step} }
      ${each((at) => `s${at}[t] = v${at};`)}
      syncthreads();
      for (let half = ${BLOCK / 2}; half > 0; half = half >> 1) {
        if (t < half) { ${pair} ${combine} ${each((at) => `s${at}[t] = v${at};`)} }
        syncthreads();
      }
      if (t === 0) { ${each((at) => `const v${at} = s${at}[0];`)} ${stored('o * parts + part')} }
      syncthreads();
    }
  }`;
}
