// Sorting along an axis, stable. Long rows are sorted by radix.ts on a GPU and by cpu-radix.ts on a CPU. Of others, first come short sorted runs: on a GPU each block sorts one in
// shared memory (a bitonic network), on a CPU each thread by insertion. Then runs are merged in pairs, in parts of the result that begin where a
// binary search finds them.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { cpuRadixSort, LEAST_CPU_RADIX_ROW } from './cpu-radix.js';
import { onlyArrays } from './fused.js';
import { isReal, type Result, type TypeOf } from './ready.js';
import { type Given, LEAST_RADIX_ROW, radixSort, type Wanted } from './radix.js';
import { alongAxis, type Rows } from './rows.js';
import { type Form, formsOf, type OpOptions, targetOf, type Target } from './target.js';

/** Elements that a block sorts, two for each thread. */
const TILE = 512;
/** Elements that a thread of a CPU sorts. */
const CPU_RUN = 32;
/** Elements that a thread merges: a core's share is long, and a GPU needs many threads. */
const CPU_PART = 512;
const GPU_PART = 8;
/** CUDA's limit of blocks along y. */
const MOST_BLOCKS_Y = 65535;
/** Twice the width of a run fits in 32 bits. */
const MOST_ELEMENTS = 2 ** 30;

/** Options of sorts. */
export interface SortOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis to sort along, negative from the end. Default the last one. */
  readonly axis?: number;
  /** Whether the largest come first. Default false. NaN comes last either way. */
  readonly descending?: boolean;
}
export const SORT_OPTIONS: readonly string[] = ['axis', 'descending'];

/** The elements sorted along an axis, NaN last: `numpy.sort(kind='stable')`. Throws as every operation does. */
export function sort<A extends DeviceArray, const O extends SortOptions = Record<never, never>>(a: A, opts?: O): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('sort', arguments, 2);
  onlyArrays('sort', [a]);
  const target = targetOf('sort', opts, [a], SORT_OPTIONS);
  const work = (keys: DeviceArray, sorted: DeviceArray, rows: Rows): void =>
    sortBy({ keys, indices: undefined }, { keys: sorted, indices: undefined }, rows, opts, target);
  return alongAxis(a, opts?.axis ?? -1, a.dtype, target, work) as Result<O, TypeOf<A>>;
}

/** The numbers, along an axis, of the elements in their order, equal ones in the order of the array: `numpy.argsort(kind='stable')`. i32. */
export function argsort<A extends DeviceArray, const O extends SortOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'i32'> {
  if (arguments.length > 2) refuseSurplus('argsort', arguments, 2);
  onlyArrays('argsort', [a]);
  const target = targetOf('argsort', opts, [a], SORT_OPTIONS);
  const work = (keys: DeviceArray, order: DeviceArray, rows: Rows): void =>
    sortBy({ keys, indices: undefined }, { keys: undefined, indices: order }, rows, opts, target);
  return alongAxis(a, opts?.axis ?? -1, 'i32', target, work) as Result<O, 'i32'>;
}

/** The option `descending`. */
export function directionOf(opts: SortOptions | undefined, byDefault: boolean): boolean {
  const value: unknown = opts?.descending ?? byDefault;
  if (typeof value === 'boolean') return value;
  throw badArgument('descending', value, `The option descending (${show(value)}) is neither true nor false.`);
}

function sortBy(from: Given, to: Wanted, rows: Rows, opts: SortOptions | undefined, target: Target): void {
  for (const form of formsOf(target)) sortRows(form, from, to, rows, directionOf(opts, false), target);
}

/** Sorts rows of elements, whose numbers are those of their places unless they are given. */
export function sortRows(form: Form, from: Given, to: Wanted, rows: Rows, isDescending: boolean, target: Target): void {
  checkInteger('length of the axis to sort', rows.length, 0, MOST_ELEMENTS);
  if (form === 'gpu' && rows.length > LEAST_RADIX_ROW) radixSort(from, to, rows, isDescending, target);
  else if (form === 'cpu' && rows.length > LEAST_CPU_RADIX_ROW) cpuRadixSort(from, to, rows, isDescending, target);
  else mergeSort(from, to, rows, isDescending, form, target);
}

function mergeSort(from: Given, to: Wanted, rows: Rows, isDescending: boolean, form: Form, target: Target): void {
  const { length: total, dtype } = from.keys;
  const isCpu = form === 'cpu';
  const run = isCpu ? CPU_RUN : TILE;
  const passes = Math.ceil(Math.log2(Math.max(1, rows.length / run)));
  using ownKeys = to.keys === undefined ? target.temporary([total], dtype) : undefined;
  using otherKeys = passes > 0 ? target.temporary([total], dtype) : undefined;
  using otherIndices = passes > 0 && to.indices !== undefined ? target.temporary([total], 'i32') : undefined;
  const keys = to.keys ?? ownKeys!;
  // The last pass writes the results, so the first one starts from there or from beside.
  const sides = [
    { keys, indices: to.indices },
    { keys: otherKeys ?? keys, indices: otherIndices ?? to.indices },
  ] as const;
  (isCpu ? sortRuns : sortTiles)(from, sides[passes % 2]!, rows, isDescending, target);
  for (let pass = 0; pass < passes; pass++) {
    const side = (passes - pass) % 2;
    const width = run * 2 ** pass;
    merge(sides[side]!, sides[1 - side]!, rows, width, isCpu ? Math.min(CPU_PART, 2 * width) : GPU_PART, isDescending, target);
  }
}

/** Whether `a` comes before `b`. NaN comes last. */
function before(a: string, b: string, type: ScalarType, isDescending: boolean): string {
  if (type === 'bool') return isDescending ? `(${a} && !${b})` : `(!${a} && ${b})`;
  const test = `${a} ${isDescending ? '>' : '<'} ${b}`;
  return isReal(type) ? `(${test} || (${b} !== ${b} && ${a} === ${a}))` : `(${test})`;
}

function sortTiles(from: Given, to: Given, { count, length }: Rows, isDescending: boolean, { recorder }: Target): void {
  const args = new Arguments();
  args.array('x', from.keys);
  args.array('y', to.keys, 'output');
  if (to.indices !== undefined) args.array('places', to.indices, 'output');
  if (from.indices !== undefined) args.array('given', from.indices);
  args.numbers({ count, length });
  const type = REGISTER_TYPE[from.keys.dtype];
  // A place beyond the row comes after all others.
  const swaps = `placeB < length && (placeA >= length || ${before('keyB', 'keyA', type, isDescending)} || (!${before('keyA', 'keyB', type, isDescending)} && placeB < placeA))`;
  args.launch(
    recorder,
    'sort',
    `tiles|${isDescending}`,
    { grid: [Math.ceil(length / TILE), Math.min(count, MOST_BLOCKS_Y)], block: TILE / 2 },
    'threadIdx, blockIdx, gridDim, shared, syncthreads',
    () => `
    const keys = shared('${from.keys.dtype}', ${TILE}); const order = shared('i32', ${TILE});
    const t = threadIdx.x; const start = blockIdx.x * ${TILE};
    for (let row = blockIdx.y; row < count; row += gridDim.y) {
      for (let half = 0; half < 2; half++) {
        const at = t + half * ${TILE / 2}; const place = start + at;
        if (place < length) keys[at] = x[row * length + place];
        order[at] = place;
      }
      syncthreads();
      for (let size = 2; size <= ${TILE}; size = size * 2) {
        for (let step = size >> 1; step > 0; step = step >> 1) {
          const low = 2 * t - (t & (step - 1)); const high = low + step;
          const keyA = keys[low]; const keyB = keys[high]; const placeA = order[low]; const placeB = order[high];
          const isSwapped = ${swaps};
          const isUp = (low & size) === 0;
          if (isSwapped === isUp) { keys[low] = keyB; keys[high] = keyA; order[low] = placeB; order[high] = placeA; }
          syncthreads();
        }
      }
      for (let half = 0; half < 2; half++) {
        const at = t + half * ${TILE / 2}; const place = start + at;
        if (place < length) { y[row * length + place] = keys[at]; ${to.indices === undefined ? '' : `places[row * length + place] = ${from.indices === undefined ? 'order[at]' : 'given[row * length + order[at]]'};`} }
      }
      syncthreads();
    }`,
  );
}

function sortRuns(from: Given, to: Given, { count, length }: Rows, isDescending: boolean, { recorder }: Target): void {
  const args = new Arguments();
  args.array('x', from.keys);
  args.array('y', to.keys, 'output');
  if (to.indices !== undefined) args.array('places', to.indices, 'output');
  if (from.indices !== undefined) args.array('given', from.indices);
  args.numbers({ count, length });
  const moved = (text: string): string => (to.indices === undefined ? '' : text);
  args.launch(
    recorder,
    'sort',
    `runs|${isDescending}`,
    { threads: [Math.min(count, MOST_BLOCKS_Y), Math.ceil(length / CPU_RUN)] },
    'i, j',
    () => `
    for (let row = i; row < count; row += ${MOST_BLOCKS_Y}) {
      const base = row * length; const start = j * ${CPU_RUN}; const end = min(start + ${CPU_RUN}, length);
      for (let next = start; next < end; next++) {
        const key = x[base + next]; let to = next;
        while (to > start) {
          const other = y[base + to - 1];
          if (!${before('key', 'other', REGISTER_TYPE[from.keys.dtype], isDescending)}) break;
          y[base + to] = other; ${moved('places[base + to] = places[base + to - 1];')} to = to - 1;
        }
        y[base + to] = key; ${moved(`places[base + to] = ${from.indices === undefined ? 'next' : 'given[base + next]'};`)}
      }
    }`,
  );
}

/** Merges neighbouring runs of `width` elements. Each thread finds where its part of the result begins in both runs, and merges from there. */
function merge(
  from: Given,
  to: Given,
  { count, length }: Rows,
  width: number,
  part: number,
  isDescending: boolean,
  { recorder }: Target,
): void {
  const args = new Arguments();
  args.array('x', from.keys);
  args.array('y', to.keys, 'output');
  if (from.indices !== undefined && to.indices !== undefined) {
    args.array('places', from.indices);
    args.array('newPlaces', to.indices, 'output');
  }
  args.numbers({ count, length, width, part });
  const type = REGISTER_TYPE[from.keys.dtype];
  const comes = before('right', 'left', type, isDescending);
  args.launch(
    recorder,
    'sort',
    `merge|${isDescending}`,
    { threads: [Math.min(count, MOST_BLOCKS_Y), Math.ceil(length / part)] },
    'i, j',
    () => `
    for (let row = i; row < count; row += ${MOST_BLOCKS_Y}) {
      const first = j * part; const start = first - first % (2 * width); const base = row * length;
      const middle = min(start + width, length); const end = min(middle + width, length);
      // Of the elements before this part, so many are of the left run.
      const done = first - start; let low = max(0, done - (end - middle)); let high = min(done, middle - start);
      while (low < high) {
        const between = low + ((high - low) >> 1); const left = x[base + start + between]; const right = x[base + middle + done - 1 - between];
        if (${comes}) high = between; else low = between + 1;
      }
      let l = start + low; let r = middle + done - low; const last = min(first + part, end);
      for (let to = first; to < last; to++) {
        let isLeft = l < middle;
        // Of equal elements, those of the left run come first.
        if (isLeft && r < end) { const left = x[base + l]; const right = x[base + r]; isLeft = !(${comes}); }
        const place = base + (isLeft ? l : r);
        y[base + to] = x[place]; ${from.indices === undefined ? '' : 'newPlaces[base + to] = places[place];'}
        l = l + (isLeft ? 1 : 0); r = r + (isLeft ? 0 : 1);
      }
    }`,
  );
}

/**
 * For each value, the number of elements of the sorted vector `sorted` that come before it: `numpy.searchsorted`. With `side: 'right'`, equal
 * elements come before it, too. i32. Throws ArgumentError unless `sorted` has one dimension and the dtype of the values, and as every operation does.
 */
export function searchSorted(
  sorted: DeviceArray,
  values: DeviceArray,
  opts: OpOptions & { readonly side?: 'left' | 'right' } = {},
): DeviceArray<'i32'> {
  if (arguments.length > 3) refuseSurplus('searchSorted', arguments, 3);
  onlyArrays('searchSorted', [sorted, values]);
  const target = targetOf('searchSorted', opts, [sorted, values], ['side']);
  if (sorted.shape.length !== 1) throw badArgument('sorted', sorted, `The array sorted (${sorted.label}) has not one dimension.`, 1);
  if (sorted.dtype !== values.dtype) {
    throw badArgument(
      'values',
      values,
      `The values (${values.label}) have not the dtype of the array sorted (${sorted.dtype}): astype() them.`,
      sorted.dtype,
    );
  }
  const { side = 'left' } = opts;
  if (side !== 'left' && side !== 'right') throw badArgument('side', side, `The side (${show(side)}) is neither 'left' nor 'right'.`);
  return alongAxis(values, -1, 'i32', target, (from, to) => {
    const args = new Arguments();
    const first = args.array('sorted', sorted);
    args.array('x', from);
    args.array('y', to, 'output');
    args.numbers({ first, step: sorted.strides[0] as number, length: sorted.length });
    const type = REGISTER_TYPE[sorted.dtype];
    const isBefore = side === 'left' ? before('other', 'value', type, false) : `!${before('value', 'other', type, false)}`;
    args.launch(
      target.recorder,
      'searchSorted',
      side,
      { threads: from.length },
      'i',
      () => `
      const value = x[i]; let low = 0; let high = length;
      while (low < high) {
        const between = low + ((high - low) >> 1); const other = sorted[first + between * step];
        if (${isBefore}) low = between + 1; else high = between;
      }
      y[i] = low;`,
    );
  }) as DeviceArray<'i32'>;
}
