// The largest or smallest elements along an axis. A GPU finds those of long rows without sorting the rows: by the digits of their keys it finds the
// key of the last one that is wanted, and sorts only what lies before it. A CPU looks for them in chunks (cpu-topk.ts).
import { checkInteger, refuseSurplus } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { DeviceArray } from '../core/api/array.js';
import { Arguments } from './body.js';
import { submitTop, topChunks } from './cpu-topk.js';
import { onlyArrays } from './fused.js';
import { checkAxis } from './layout.js';
import { chunksOf, type Given, LEAST_RADIX_ROW, MOST_BLOCKS_Y, submitOffsets, type Wanted } from './radix.js';
import { bitsOf, THREADS, tileOf } from './radix-text.js';
import type { TypeOf } from './ready.js';
import { copied, type Rows, turned } from './rows.js';
import { chunksText, DIGIT_TEXT, searchText, takeText } from './select-text.js';
import { directionOf, SORT_OPTIONS, type SortOptions, sortRows } from './sorting.js';
import { formsOf, type Target, targetOf } from './target.js';

/** More of a row than this part are found by sorting it. */
const LARGEST_PART = 1 / 8;

/**
 * The `k` largest elements along an axis, the largest first, and their numbers along the axis: `torch.topk`, `cupy.argpartition`. With
 * `descending: false` the smallest. Throws ArgumentError for a `k` of more than the axis has, and as every operation does.
 */
export function topk<A extends DeviceArray>(
  a: A,
  k: number,
  opts: Omit<SortOptions, 'out' | 'dtype'> = {},
): { values: DeviceArray<TypeOf<A>>; indices: DeviceArray<'i32'> } {
  if (arguments.length > 3) refuseSurplus('topk', arguments, 3);
  onlyArrays('topk', [a]);
  checkOptionNames(opts, ['axis', 'descending', 'stream', 'device']);
  const target = targetOf('topk', opts, [a], SORT_OPTIONS);
  const rank = a.shape.length;
  const axis = checkAxis(opts.axis ?? -1, Math.max(1, rank));
  const isFromLargest = directionOf(opts, true);
  const length = a.shape[axis] ?? 1;
  checkInteger('k', k, rank === 0 ? 1 : 0, length);
  const shape = a.shape.map((extent, own) => (own === axis ? k : extent));
  const values = target.take(shape, a.dtype);
  let indices: DeviceArray | undefined;
  try {
    indices = target.take(shape, 'i32');
    if (values.length > 0) {
      const given = turned(a, axis);
      using own = given.isContiguous ? undefined : copied(given, target);
      const rows = { count: a.length / length, length };
      submit(own ?? given, rows, k, isFromLargest, { keys: turned(values, axis), indices: turned(indices, axis) }, target);
    }
  } catch (error) {
    target.giveBack(values);
    if (indices !== undefined) target.giveBack(indices);
    throw error;
  }
  return { values: values as DeviceArray<TypeOf<A>>, indices: indices as DeviceArray<'i32'> };
}

/** Brings the first `k` elements of sorted rows, and their numbers, to arrays of any strides. */
function submit(
  keys: DeviceArray,
  rows: Rows,
  k: number,
  isDescending: boolean,
  to: Record<keyof Wanted, DeviceArray>,
  target: Target,
): void {
  const from = { keys, indices: undefined };
  for (const form of formsOf(target)) {
    const isGpu = form === 'gpu';
    const isFound = isGpu && rows.length > LEAST_RADIX_ROW && k <= rows.length * LARGEST_PART;
    const chunks = isGpu ? 0 : topChunks(rows, k);
    const length = isFound ? k : chunks > 0 ? chunks * k : rows.length;
    // Where so many are sorted as are wanted, they need no copy.
    const isDirect = length === k && to.keys.isContiguous && to.indices.isContiguous;
    const shape = [...to.keys.shape.slice(0, -1), length];
    using sorted = isDirect ? undefined : target.temporary(shape, keys.dtype);
    using order = isDirect ? undefined : target.temporary(shape, 'i32');
    const sides = { keys: sorted ?? to.keys, indices: order ?? to.indices };
    if (length < rows.length) {
      using chosen = target.temporary([rows.count * length], keys.dtype);
      using places = target.temporary([rows.count * length], 'i32');
      const found = { keys: chosen, indices: places };
      if (isFound) find(keys, rows, k, isDescending, found, target);
      else submitTop(keys, rows, k, chunks, isDescending, found, target);
      sortRows(form, found, sides, { count: rows.count, length }, isDescending, target);
    } else sortRows(form, from, sides, rows, isDescending, target);
    if (sorted === undefined || order === undefined) continue;
    const first = (array: DeviceArray): DeviceArray =>
      array.view(...array.shape.map((_, axis) => (axis === array.shape.length - 1 ? ([0, k] as const) : undefined)));
    const isScalar = to.keys.shape.length === 0;
    target.recorder.copy(to.keys, isScalar ? sorted.reshape([]) : first(sorted));
    target.recorder.copy(to.indices, isScalar ? order.reshape([]) : first(order));
  }
}

/** The first `k` elements of each row in the order of their keys, but here in the order of the row except for those with the last key. */
function find(
  keys: DeviceArray,
  { count, length }: Rows,
  k: number,
  isDescending: boolean,
  to: Record<keyof Given, DeviceArray>,
  target: Target,
): void {
  const { recorder } = target;
  const form = { dtype: keys.dtype, isDescending };
  const key = `${isDescending}`;
  const [chunk, chunks] = chunksOf(tileOf(keys.dtype), { count, length });
  const rows = Math.min(count, MOST_BLOCKS_Y);
  using found = target.temporary([count, 2], 'u64');
  using bins = target.temporary([count, 256], 'u32');
  recorder.fill(bins as DeviceArray<'u32'>, 0);
  const top = bitsOf(keys.dtype) - 8;
  for (let shift = top; shift >= 0; shift -= 8) {
    const isFirst = Number(shift === top);
    const counting = new Arguments();
    counting.array('x', keys);
    counting.array('found', found);
    counting.array('bins', bins, 'inout');
    counting.numbers({ shift, isFirst, rows: count, length, chunk });
    counting.launchCuda(recorder, 'topk', key, [chunks, rows], THREADS, 'topkCount', () => searchText(form));
    const choosing = new Arguments();
    choosing.array('bins', bins, 'inout');
    choosing.array('found', found, 'inout');
    choosing.numbers({ shift, isFirst, k });
    choosing.launchCuda(recorder, 'topk', '', [count, 1], THREADS, 'topkDigit', () => DIGIT_TEXT);
  }
  using counts = target.temporary([count, 2, chunks], 'u32');
  using totals = target.temporary([count, 2], 'u32');
  const dividing = new Arguments();
  dividing.array('x', keys);
  dividing.array('found', found);
  dividing.array('counts', counts, 'output');
  dividing.numbers({ rows: count, length, chunk });
  dividing.launchCuda(recorder, 'topk', key, [chunks, rows], THREADS, 'topkChunks', () => chunksText(form));
  submitOffsets(counts, totals, 2, count, chunks, target);
  const taking = new Arguments();
  taking.array('x', keys);
  taking.array('y', to.keys, 'output');
  taking.array('places', to.indices, 'output');
  taking.array('found', found);
  taking.array('counts', counts);
  taking.array('totals', totals);
  taking.numbers({ rows: count, length, chunk, k });
  taking.launchCuda(recorder, 'topk', key, [chunks, rows], THREADS, 'topkTake', () => takeText(form));
}
