// Radix sorts of long rows on a GPU. Each pass orders the elements, stably, by 8 bits of their keys, from the lowest ones up: the digits of each
// chunk of a row are counted, the counts give each chunk the places for its digits, and each chunk moves its elements there. No block waits
// for another, and the elements are read twice and written once.
import type { DeviceArray } from '../core/api/array.js';
import { Arguments } from './body.js';
import { type Beside, bitsOf, countText, moveText, OFFSETS_TEXT, THREADS, tileOf } from './radix-text.js';
import type { Rows } from './rows.js';
import type { Target } from './target.js';

/** Rows of more elements than these are worth the passes. */
export const LEAST_RADIX_ROW = 2048;
/** The chunks of all rows: several blocks for each multiprocessor of the largest GPU. */
const MOST_CHUNKS = 1056;
/** CUDA's limit of blocks along y. */
export const MOST_BLOCKS_Y = 65535;

/** Elements, and their numbers. */
export interface Given {
  readonly keys: DeviceArray;
  readonly indices: DeviceArray | undefined;
}
/** Arrays for sorted elements, and for their numbers. */
export interface Wanted {
  readonly keys: DeviceArray | undefined;
  readonly indices: DeviceArray | undefined;
}

/** Sorts rows of `from`, whose elements have the numbers `from.indices` or else those of their places. `to` has keys, numbers, or both. */
export function radixSort(from: Given, to: Wanted, { count, length }: Rows, isDescending: boolean, target: Target): void {
  const { recorder } = target;
  const { dtype, length: total } = from.keys;
  const [chunk, chunks] = chunksOf(tileOf(dtype), { count, length });
  const passes = bitsOf(dtype) / 8;
  const rows = Math.min(count, MOST_BLOCKS_Y);
  const form = { dtype, isDescending };
  const key = `${isDescending}`;
  using counts = target.temporary([count, 256, chunks], 'u32');
  using totals = target.temporary([count, 256], 'u32');
  using otherKeys = passes > 1 ? target.temporary([total], dtype) : undefined;
  using ownKeys = passes > 2 && to.keys === undefined ? target.temporary([total], dtype) : undefined;
  using otherIndices = passes > 1 && to.indices !== undefined ? target.temporary([total], 'i32') : undefined;
  // The number of passes is 1 or even, so the last one writes the results.
  const sides = [
    { keys: otherKeys, indices: otherIndices },
    { keys: to.keys ?? ownKeys, indices: to.indices },
  ];
  let read = from;
  for (let pass = 0; pass < passes; pass++) {
    const isLast = pass === passes - 1;
    const written = isLast ? to : sides[pass % 2]!;
    const numbers = { shift: 8 * pass, rows: count, length, chunk };
    const counting = new Arguments();
    counting.array('x', read.keys);
    counting.array('counts', counts, 'output');
    counting.numbers(numbers);
    counting.launchCuda(recorder, 'sort', key, [chunks, rows], THREADS, 'sortCount', () => countText(form));
    submitOffsets(counts, totals, 256, count, chunks, target);
    const moving = new Arguments();
    moving.array('x', read.keys);
    if (written.keys !== undefined) moving.array('y', written.keys, 'output');
    if (read.indices !== undefined) moving.array('places', read.indices);
    if (written.indices !== undefined) moving.array('newPlaces', written.indices, 'output');
    moving.array('counts', counts);
    moving.array('totals', totals);
    moving.numbers(numbers);
    const beside: Beside = written.indices === undefined ? 'none' : read.indices === undefined ? 'own' : 'given';
    const keepsKeys = written.keys !== undefined;
    moving.launchCuda(recorder, 'sort', key, [chunks, rows], THREADS, 'sortMove', () => moveText(form, beside, keepsKeys));
    if (!isLast) read = { keys: written.keys!, indices: written.indices };
  }
}

/** The elements of a chunk, a multiple of those of a tile, and the chunks of a row. */
export function chunksOf(tile: number, { count, length }: Rows): readonly [chunk: number, chunks: number] {
  const chunk = Math.ceil(Math.ceil(length / tile) / Math.max(1, Math.floor(MOST_CHUNKS / count))) * tile;
  return [chunk, Math.ceil(length / chunk)];
}

/** Makes of the counts of each chunk those of the chunks before, and their sum. `kinds`: how many counts a chunk has. */
export function submitOffsets(
  counts: DeviceArray,
  totals: DeviceArray,
  kinds: number,
  count: number,
  chunks: number,
  target: Target,
): void {
  const args = new Arguments();
  args.array('counts', counts, 'inout');
  args.array('totals', totals, 'output');
  args.numbers({ rows: count, chunks });
  args.launchCuda(target.recorder, 'sort', '', [kinds, Math.min(count, MOST_BLOCKS_Y)], THREADS, 'sortOffsets', () => OFFSETS_TEXT);
}
