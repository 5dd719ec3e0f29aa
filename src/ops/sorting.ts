// Sorting along an axis, stable. First come short sorted runs: on a GPU each block sorts one in shared memory (a bitonic network), on a CPU each
// thread by insertion. Then runs are merged in pairs, in parts of the result that begin where a binary search finds them.
import { badArgument, checkInteger } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { arraysAmong } from './fused.js';
import { isReal, type Result, type TypeOf } from './ready.js';
import { alongAxis, type Rows } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';

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
const SORT_OPTIONS = ['axis', 'descending'];

/** The elements sorted along an axis, NaN last: `numpy.sort(kind='stable')`. Throws as every operation does. */
export function sort<A extends DeviceArray, const O extends SortOptions = Record<never, never>>(a: A, opts?: O): Result<O, TypeOf<A>> {
  arraysAmong('sort', [a]);
  const target = targetOf('sort', opts, [a], SORT_OPTIONS);
  return alongAxis(a, opts?.axis ?? -1, a.dtype, target, (from, to, rows) => sortRows(from, to, undefined, rows, opts, target)) as Result<
    O,
    TypeOf<A>
  >;
}

/** The numbers, along an axis, of the elements in their order, equal ones in the order of the array: `numpy.argsort(kind='stable')`. i32. */
export function argsort<A extends DeviceArray, const O extends SortOptions = Record<never, never>>(a: A, opts?: O): Result<O, 'i32'> {
  arraysAmong('argsort', [a]);
  const target = targetOf('argsort', opts, [a], SORT_OPTIONS);
  return alongAxis(a, opts?.axis ?? -1, 'i32', target, (from, to, rows) => {
    using keys = target.temporary([rows.count * rows.length], a.dtype);
    sortRows(from, keys, to, rows, opts, target);
  }) as Result<O, 'i32'>;
}

/**
 * The `k` largest elements along an axis, the largest first, and their numbers along the axis: `torch.topk`, `cupy.argpartition`. With
 * `descending: false` the smallest. Throws ArgumentError for a `k` of more than the axis has, and as every operation does.
 */
export function topk<A extends DeviceArray>(
  a: A,
  k: number,
  opts: Omit<SortOptions, 'out' | 'dtype'> = {},
): { values: DeviceArray<TypeOf<A>>; indices: DeviceArray<'i32'> } {
  arraysAmong('topk', [a]);
  const target = targetOf('topk', opts, [a], SORT_OPTIONS);
  const rank = a.shape.length;
  const axis = opts.axis ?? -1;
  const at = axis < 0 ? axis + rank : axis;
  checkInteger('k', k, 0, a.shape[at] ?? 1);
  const order = { ...opts, descending: opts.descending ?? true };
  const first = (array: DeviceArray): DeviceArray =>
    array.view(...Array.from({ length: rank }, (_, own) => (own === at ? ([0, k] as const) : undefined)));
  using indices = argsort(a, order);
  using values = sort(a, order);
  const shape = a.shape.map((extent, own) => (own === at ? k : extent));
  const [bestValues, bestIndices] = [target.take(shape, a.dtype), target.take(shape, 'i32')];
  target.recorder.copy(bestValues, first(values as DeviceArray));
  target.recorder.copy(bestIndices, first(indices as DeviceArray));
  return { values: bestValues as DeviceArray<TypeOf<A>>, indices: bestIndices as DeviceArray<'i32'> };
}

/** Sorts rows of `from` into `keys`, and the numbers of their elements into `indices`. */
function sortRows(
  from: DeviceArray,
  keys: DeviceArray,
  indices: DeviceArray | undefined,
  rows: Rows,
  opts: SortOptions | undefined,
  target: Target,
): void {
  const { length } = rows;
  checkInteger('length of the axis to sort', length, 0, MOST_ELEMENTS);
  const isDescending = opts?.descending ?? false;
  const isCpu = target.recorder.device.info.backend === 'cpu';
  const run = isCpu ? CPU_RUN : TILE;
  const passes = Math.ceil(Math.log2(Math.max(1, length / run)));
  using otherKeys = passes > 0 ? target.temporary([from.length], from.dtype) : undefined;
  using otherIndices = passes > 0 && indices !== undefined ? target.temporary([from.length], 'i32') : undefined;
  // The last pass writes the results, so the first one starts from there or from beside.
  const sides = [
    { keys, indices },
    { keys: otherKeys ?? keys, indices: otherIndices ?? indices },
  ] as const;
  (isCpu ? sortRuns : sortTiles)(from, sides[passes % 2]!, rows, isDescending, target);
  for (let pass = 0; pass < passes; pass++) {
    const side = (passes - pass) % 2;
    const width = run * 2 ** pass;
    merge(sides[side]!, sides[1 - side]!, rows, width, isCpu ? Math.min(CPU_PART, 2 * width) : GPU_PART, isDescending, target);
  }
}

interface Side {
  readonly keys: DeviceArray;
  readonly indices: DeviceArray | undefined;
}

/** Whether `a` comes before `b`. NaN comes last. */
function before(a: string, b: string, type: ScalarType, isDescending: boolean): string {
  if (type === 'bool') return isDescending ? `(${a} && !${b})` : `(!${a} && ${b})`;
  const test = `${a} ${isDescending ? '>' : '<'} ${b}`;
  return isReal(type) ? `(${test} || (${b} !== ${b} && ${a} === ${a}))` : `(${test})`;
}

function sortTiles(from: DeviceArray, to: Side, { count, length }: Rows, isDescending: boolean, { recorder }: Target): void {
  const args = new Arguments();
  args.array('x', from);
  args.array('y', to.keys, 'output');
  if (to.indices !== undefined) args.array('places', to.indices, 'output');
  args.numbers({ count, length });
  const type = REGISTER_TYPE[from.dtype];
  // A place beyond the row comes after all others.
  const swaps = `placeB < length && (placeA >= length || ${before('keyB', 'keyA', type, isDescending)} || (!${before('keyA', 'keyB', type, isDescending)} && placeB < placeA))`;
  args.launch(
    recorder,
    'sort',
    `tiles|${isDescending}`,
    { grid: [Math.ceil(length / TILE), Math.min(count, MOST_BLOCKS_Y)], block: TILE / 2 },
    'threadIdx, blockIdx, gridDim, shared, syncthreads',
    () => `
    const keys = shared('${from.dtype}', ${TILE}); const order = shared('i32', ${TILE});
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
        if (place < length) { y[row * length + place] = keys[at]; ${to.indices === undefined ? '' : 'places[row * length + place] = order[at];'} }
      }
      syncthreads();
    }`,
  );
}

function sortRuns(from: DeviceArray, to: Side, { count, length }: Rows, isDescending: boolean, { recorder }: Target): void {
  const args = new Arguments();
  args.array('x', from);
  args.array('y', to.keys, 'output');
  if (to.indices !== undefined) args.array('places', to.indices, 'output');
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
          if (!${before('key', 'other', REGISTER_TYPE[from.dtype], isDescending)}) break;
          y[base + to] = other; ${moved('places[base + to] = places[base + to - 1];')} to = to - 1;
        }
        y[base + to] = key; ${moved('places[base + to] = next;')}
      }
    }`,
  );
}

/** Merges neighbouring runs of `width` elements. Each thread finds where its part of the result begins in both runs, and merges from there. */
function merge(
  from: Side,
  to: Side,
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
  arraysAmong('searchSorted', [sorted, values]);
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
  if (side !== 'left' && side !== 'right') throw badArgument('side', side, `The side (${String(side)}) is neither 'left' nor 'right'.`);
  return alongAxis(values, -1, target.typeOf('i32'), target, (from, to) => {
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
