// Folds the elements along some axes into one value each: sums, extremes, and where they are.
//
// Long folds take two kernels: each block or thread folds a part, and the second kernel folds the parts. What is a part depends on the shape
// and the strides only, so a fold gives the same bits whenever it runs.
import type { DeviceArray } from '../core/api/array.js';
import { type DType, i32, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { input, type Kernel, type LaunchShape, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { placesIn, STORE_NAMES, storeText } from './fused.js';
import { broadcastStrides, isSameList, joined } from './layout.js';
import { type Form, formsOf, type Target } from './target.js';

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

/**
 * Threads of a block that folds one row, or a part of one. On a CPU they are lanes: so few read a row from its begin to its end, and wait less for
 * each other at the end.
 */
const BLOCKS = { cpu: 16, gpu: 256 } as const;
/** Fewer elements than these are folded by one thread. */
const LEAST_ROW = 64;
/** The elements of a part: what a core's first cache holds, and 16 for each thread of a GPU's block. */
const PARTS = { cpu: 2 ** 13, gpu: 256 * 16 } as const;
/** The parts of one fold: 16 blocks for each multiprocessor of the largest GPU, so that the last of them leave few without work. */
const MOST_PARTS = 2112;
/** The threads that fold columns: enough for cores, and for a GPU. */
const COLUMN_THREADS = { cpu: 2 ** 16, gpu: 2 ** 18 } as const;
/** Elements that a thread of a GPU loads at once. */
const GPU_LOADS = 8;
/** Folds that a thread of a CPU has under way in a row, so that one does not wait for the other. */
const CPU_CHAINS = 4;
/** CUDA's limit of blocks along y. */
const MOST_BLOCKS_Y = 65535;

const kernels: Map<string, Kernel> = new Map();

/** What one kernel reads: where element 0 of an array is, and its strides along the axes that stay and along those that are folded. */
interface Source {
  readonly dtype: DType;
  readonly first: number;
  readonly kept: readonly number[];
  readonly folded: readonly number[];
}
interface Axes {
  readonly kept: readonly number[];
  readonly folded: readonly number[];
}

/** A launch of a fold: what does not change between calls on arrays of the same layout. */
interface Step {
  readonly kernel: Kernel;
  readonly shape: LaunchShape;
  /** The arguments, in the order of the parameters: arrays are undefined. */
  readonly args: Readonly<Record<string, unknown>>;
}
/** Names of arrays: a template string for each launch takes longer. */
const FROM = ['x0', 'x1'] as const;
const TO = ['y0', 'y1'] as const;
/** The launches of a fold, and the arrays between them if there are two. */
interface Plan {
  readonly steps: readonly Step[];
  readonly partials: readonly (readonly [shape: readonly number[], dtype: DType])[];
}

/** The layouts for which a plan was made. */
interface Layouts {
  readonly form: Form;
  readonly into: DType;
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly operands: readonly { readonly dtype: DType; readonly shape: readonly number[]; readonly strides: readonly number[] }[];
}
interface Plans {
  readonly byKey: Map<string, Plan>;
  /** The latest one: loops come back to it, and numbers are compared sooner than a key is made of them. */
  latest?: { readonly of: Layouts; readonly plan: Plan };
}
const plans: WeakMap<Fold, Plans> = new WeakMap();
/** More layouts than these are of a program that never comes back to one. */
const MOST_PLANS = 256;

/** Submits a fold of operands, broadcast to `shape`, along `axes` into `result`, which is contiguous. */
export function submitFold(
  fold: Fold,
  operands: readonly DeviceArray[],
  shape: readonly number[],
  axes: readonly number[],
  result: DeviceArray,
  target: Target,
): void {
  let known = plans.get(fold);
  if (known === undefined) plans.set(fold, (known = { byKey: new Map<string, Plan>() }));
  for (const form of formsOf(target)) {
    const of: Layouts = { form, into: result.dtype, shape, axes, operands };
    if (known.latest === undefined || !areSame(known.latest.of, of)) {
      const kept = operands.map(({ dtype, shape: own, strides }) => ({ dtype, shape: own, strides }));
      known.latest = {
        of: { ...of, operands: kept },
        plan: planFor(known.byKey, of, () => planOf(form, fold, operands, shape, axes, result)),
      };
    }
    run(known.latest.plan, operands, result, target);
  }
}

function planFor(known: Map<string, Plan>, { form, into, shape, axes, operands }: Layouts, made: () => Plan): Plan {
  let key = `${form}${into}|${shape.join()}|${axes.join()}`;
  for (const operand of operands) key += `|${operand.dtype}${operand.shape.join()}:${operand.strides.join()}`;
  let plan = known.get(key);
  if (plan !== undefined) return plan;
  if (known.size >= MOST_PLANS) known.clear();
  known.set(key, (plan = made()));
  return plan;
}

function areSame(a: Layouts, b: Layouts): boolean {
  if (a.form !== b.form || a.into !== b.into || a.operands.length !== b.operands.length) return false;
  if (!isSameList(a.shape, b.shape) || !isSameList(a.axes, b.axes)) return false;
  for (let at = 0; at < a.operands.length; at++) {
    const [one, other] = [a.operands[at]!, b.operands[at]!];
    if (one.dtype !== other.dtype || !isSameList(one.shape, other.shape) || !isSameList(one.strides, other.strides)) return false;
  }
  return true;
}

function run({ steps, partials }: Plan, operands: readonly DeviceArray[], result: DeviceArray, target: Target): void {
  const between: DeviceArray[] = [];
  try {
    for (const [shape, dtype] of partials) between.push(target.temporary(shape, dtype));
    for (let at = 0; at < steps.length; at++) {
      const { kernel, shape, args: known } = steps[at]!;
      const args: Record<string, unknown> = { ...known };
      const sources = at === 0 ? operands : between;
      for (let n = 0; n < sources.length; n++) args[FROM[n]!] = sources[n]!.span[0];
      if (at === steps.length - 1) args['y0'] = result.span[0];
      else for (let n = 0; n < between.length; n++) args[TO[n]!] = between[n]!.span[0];
      target.recorder.launch(kernel, shape, args as never);
    }
  } finally {
    for (const one of between) one[Symbol.dispose]();
  }
}

function planOf(
  form: Form,
  fold: Fold,
  operands: readonly DeviceArray[],
  shape: readonly number[],
  axes: readonly number[],
  result: DeviceArray,
): Plan {
  const part = (isFolded: boolean): { extents: readonly number[]; strides: readonly (readonly number[])[] } => {
    const chosen = shape.map((_, axis) => axis).filter((axis) => axes.includes(axis) === isFolded);
    return joined({
      extents: chosen.map((axis) => shape[axis] as number),
      strides: operands.map((operand) => chosen.map((axis) => broadcastStrides(operand, shape)[axis] as number)),
    });
  };
  const [kept, folded] = [part(false), part(true)];
  const sources = operands.map((array, at) => ({
    dtype: array.dtype,
    first: array.span[1],
    kept: kept.strides[at]!,
    folded: folded.strides[at]!,
  }));
  const total = lengthOf(folded.extents);
  const outputs = lengthOf(kept.extents);
  // The threads of a block read neighbours: along the row if the folded axis is the fastest, else along the results.
  const step = (strides: readonly number[]): number => Math.abs(strides.at(-1) ?? Infinity);
  const isRow = total >= LEAST_ROW && step(sources[0]!.folded) <= step(sources[0]!.kept);
  // A GPU's parts begin where a turn of loads begins, so that none has a rest but the last.
  const turn = isRow && form === 'gpu' ? BLOCKS.gpu * GPU_LOADS : 1;
  const most = isRow
    ? Math.min(Math.max(1, Math.ceil(total / PARTS[form])), Math.max(1, Math.floor(MOST_PARTS / outputs)))
    : Math.min(Math.max(1, Math.ceil(total / LEAST_ROW)), Math.max(1, Math.floor(COLUMN_THREADS[form] / outputs)), MOST_PARTS);
  const chunk = most === 1 ? total : Math.ceil(total / most / turn) * turn;
  const parts = most === 1 ? 1 : Math.ceil(total / chunk);
  const first = { sources, isLeaf: true, extents: { kept: kept.extents, folded: folded.extents }, form, isRow, parts, chunk, total };
  if (parts === 1) return { steps: [stepOf(fold, first, [result.dtype], true)], partials: [] };
  const carried = fold.carried.map(({ type }) => type as DType);
  const [keptStride, foldedStride] = isRow ? [parts, 1] : [1, outputs];
  const second = {
    sources: carried.map((dtype) => ({ dtype, first: 0, kept: [keptStride], folded: [foldedStride] })),
    isLeaf: false,
    extents: { kept: [outputs], folded: [parts] },
    form,
    isRow: isRow && parts >= LEAST_ROW,
    parts: 1,
    chunk: parts,
    total,
  };
  return {
    steps: [stepOf(fold, first, carried, false), stepOf(fold, second, [result.dtype], true)],
    partials: carried.map((dtype) => [isRow ? [outputs, parts] : [parts, outputs], dtype]),
  };
}

interface Stage {
  readonly sources: readonly Source[];
  /** Whether the sources are operands, not values that are carried. */
  readonly isLeaf: boolean;
  readonly extents: Axes;
  readonly form: Form;
  readonly isRow: boolean;
  readonly parts: number;
  /** The elements of each part but the last. */
  readonly chunk: number;
  /** The elements that a result is of. */
  readonly total: number;
}

function stepOf(fold: Fold, stage: Stage, into: readonly DType[], isLast: boolean): Step {
  const { sources, isLeaf, extents, form, isRow, parts, chunk, total } = stage;
  const count = lengthOf(extents.folded);
  const outputs = lengthOf(extents.kept);
  const params: Record<string, Param> = {};
  const args: Record<string, unknown> = {};
  const give = (name: string, value: number): void => {
    params[name] = i32;
    args[name] = value;
  };
  const array = (name: string, param: Param): void => {
    params[name] = param;
    args[name] = undefined;
  };
  const elements = sources.map(({ dtype, first, kept, folded }, at) => {
    const name = `x${at}`;
    array(name, input(scalarOf(dtype)));
    const terms: string[] = [];
    if (first !== 0) {
      give(`${name}o`, first);
      terms.push(`${name}o`);
    }
    const add = (strides: readonly number[], place: string): void => {
      for (const [axis, stride] of strides.entries()) {
        if (stride === 0) continue;
        if (stride === 1) terms.push(`${place}${axis}`);
        else {
          give(`${name}${place}${axis}`, stride);
          terms.push(`${place}${axis} * ${name}${place}${axis}`);
        }
      }
    };
    add(kept, 'k');
    add(folded, 'm');
    return { text: `${name}[${terms.join(' + ') || '0'}]`, type: REGISTER_TYPE[dtype] };
  });
  for (const [axis, extent] of extents.kept.entries()) if (axis > 0) give(`e${axis}`, extent);
  for (const [axis, extent] of extents.folded.entries()) if (axis > 0) give(`f${axis}`, extent);
  give('count', count);
  give('outputs', outputs);
  give('chunk', chunk);
  give('parts', parts);
  give('total', total);
  for (const [at, dtype] of into.entries()) array(`y${at}`, output(scalarOf(dtype)));
  const key = [
    fold.key,
    form,
    isLeaf,
    isLast,
    isRow,
    extents.kept.length,
    extents.folded.length,
    ...elements.map(({ text }) => text),
    ...sources.map(({ dtype }) => dtype),
    ...into,
  ].join('|');
  let kernel = kernels.get(key);
  if (kernel === undefined) {
    const text = textOf(fold, stage, elements, Object.keys(params), into, isLast);
    kernel = kernelOfText(fold.name, params, text, new Map(), { file: undefined, line: 0 });
    kernels.set(key, kernel);
  }
  const shape: LaunchShape = isRow
    ? { grid: [parts, Math.min(outputs, MOST_BLOCKS_Y)], block: BLOCKS[form], label: fold.name }
    : { threads: [parts, outputs], label: fold.name };
  return { kernel, shape, args };
}

function textOf(
  fold: Fold,
  { isLeaf, form, isRow, extents }: Stage,
  elements: readonly { readonly text: string; readonly type: ScalarType }[],
  names: readonly string[],
  into: readonly DType[],
  isLast: boolean,
): string {
  const { carried, combine } = fold;
  const block = BLOCKS[form];
  const valuesOf = (texts: readonly string[], number: string): readonly string[] => (isLeaf ? fold.leaf(texts, number) : texts);
  const each = (text: (at: number) => string): string => carried.map((_, at) => text(at)).join(' ');
  const start = each((at) => `let v${at} = ${carried[at]!.init};`);
  const last = extents.folded.length - 1;
  const values = valuesOf(
    elements.map(({ text }) => text),
    'r',
  );
  const step = `${placesIn('r', last, 'm', 'f')} ${each((at) => `const a${at} = ${values[at]};`)} ${combine}`;
  // Elements are loaded before the first is folded, so that the loads do not wait for each other.
  const load = (one: number): string => {
    const own = valuesOf(
      elements.map(({ text }) => text.replace(/\bm(\d+)\b/g, `m${one}_$1`)),
      `r${one}`,
    );
    return `${placesIn(`r${one}`, last, `m${one}_`, 'f')} ${each((at) => `const b${one}_${at} = ${own[at]};`)}`;
  };
  const folded = (one: number): string => `{ ${each((at) => `const a${at} = b${one}_${at};`)} ${combine} }`;
  /** Folds the elements `from + n` for each `n` from `first` to below `size`, `apart` from each other. */
  const loop = (first: string, apart: number): string => {
    const rest = (begin: string): string =>
      `for (${begin}; n < size; ${apart === 1 ? 'n++' : `n += ${apart}`}) { const r = from + n; ${step} }`;
    if (form === 'cpu' && apart === 1) return rest(`let n = ${first}`);
    if (form === 'cpu') {
      const chains = Array.from({ length: CPU_CHAINS }, (_, one) => one);
      const own = (one: number, statements: string): string =>
        `{ ${each((at) => `let v${at} = c${one}_${at};`)} ${statements} ${each((at) => `c${one}_${at} = v${at};`)} }`;
      // All threads have the same turns here, so their elements lie side by side.
      return `${chains.map((one) => each((at) => `let c${one}_${at} = v${at};`)).join(' ')}
      let begin = 0;
      for (; begin < size - ${CPU_CHAINS * apart - 1}; begin += ${CPU_CHAINS * apart}) {
        ${chains.map((one) => own(one, `const r = from + begin + ${one * apart} + ${first}; ${step}`)).join('\n        ')}
      }
      ${each((at) => `v${at} = c0_${at};`)}
      ${rest(`let n = begin + ${first}`)}
      ${chains
        .slice(1)
        .map((one) => `{ ${each((at) => `const a${at} = c${one}_${at};`)} ${combine} }`)
        .join(' ')}`;
    }
    const numbers = Array.from({ length: GPU_LOADS }, (_, one) => one);
    return `let n = ${first};
      for (; n < size - ${(GPU_LOADS - 1) * apart}; n += ${GPU_LOADS * apart}) {
        ${numbers.map((one) => `const r${one} = from + n + ${one * apart}; ${load(one)}`).join('\n        ')}
        ${numbers.map(folded).join(' ')}
      }
      ${rest('')}`;
  };
  // No sum of these exceeds the elements, of which there may be as many as an i32 holds.
  const bounds = (part: string): string => `const from = ${part} * chunk; const size = min(chunk, count - from);`;
  const stored = (place: string): string =>
    into
      .map((dtype, at) => {
        const [text, type] = isLast ? [fold.finish('total'), fold.result] : [`v${at}`, carried[at]!.type];
        return storeText(`y${at}[${place}]`, `(${text})`, type, dtype);
      })
      .join(' ');
  const casts = `${STORE_NAMES}, idiv, min, i32, u32, i64, u64, f32, f64`;
  const args = `({ ${names.join(', ')} }`;
  const kept = placesIn('o', extents.kept.length - 1, 'k', 'e');
  if (!isRow) {
    return `${args}, { i, j, ${casts} }) => { const o = j; ${kept} ${bounds('i')} ${start}
      ${loop('0', 1)} ${stored('i * outputs + o')} }`;
  }
  const pair = each((at) => `let v${at} = s${at}[t]; const a${at} = s${at}[t + half];`);
  return `${args}, { threadIdx, blockIdx, gridDim, shared, syncthreads, ${casts} }) => {
    ${each((at) => `const s${at} = shared('${carried[at]!.type}', ${block});`)}
    const t = threadIdx.x; const part = blockIdx.x; ${bounds('part')}
    for (let o = blockIdx.y; o < outputs; o += gridDim.y) {
      ${kept} ${start}
      ${loop('t', block)}
      ${each((at) => `s${at}[t] = v${at};`)}
      syncthreads();
      for (let half = ${block / 2}; half > 0; half = half >> 1) {
        if (t < half) { ${pair} ${combine} ${each((at) => `s${at}[t] = v${at};`)} }
        syncthreads();
      }
      if (t === 0) { ${each((at) => `const v${at} = s${at}[0];`)} ${stored('o * parts + part')} }
      syncthreads();
    }
  }`;
}
