// Tiles of cooperative groups with more threads than a warp.
import { f32, i32, input, output } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const BLOCK = 256;
const x = ints(2 * BLOCK, (i) => ((i * 37) % 23) - 11);
const reals = floats(BLOCK, (i) => ((i * 29) % 31) - 15);

const sum = (values: Int32Array): number => values.reduce((a, b) => a + b, 0);
function tileOf(i: number, size: number): Int32Array {
  return x.subarray(i - (i % size), i - (i % size) + size);
}
function found(i: number, size: number): number {
  const tile = tileOf(i, size);
  const votes = (tile.includes(7) ? 1 : 0) + (tile.every((v) => v < 9) ? 2 : 0);
  const last = tile.at(-1)!;
  return sum(tile) + 3 * Math.max(...tile) + 5 * last + 7 * tile[33 + ((last * last) % 8)]! + 11 * votes;
}
function ownWay(): Float32Array {
  const values = new Float32Array(BLOCK);
  for (const first of [0, 128]) {
    const last = first / 128;
    const next = reals.map((_v, t) => reals[first + ((t + 1) % 128)]! + last);
    for (let t = 0; t < 128; t++) values[first + t] = next[t]! + (first === 0 ? Math.min(...reals.subarray(0, 128)) : 0);
  }
  return values;
}
const sums64 = (i: number): number => sum(tileOf(i, 64).subarray(0, (i % 64) + 1));

/** Component `c` of thread `i`'s result, whose values have four components. */
function largeValue(i: number, c: number): number {
  const [warp, lane] = [i - (i % 32), i % 32];
  const at = (thread: number, part: number): number => reals[4 * thread + part]!;
  const [first, up, down, other] = [warp, lane < 2 ? i : i - 2, lane + 3 < 32 ? i + 3 : i, i ^ 16];
  return [at(first, 0) + at(up, 3), at(up, 1) + at(down, 0), at(down, 2) + at(other, 3), at(other, 1) + at(first, 2)][c]!;
}

export const WIDE_TILE_CASES: readonly TextCase[] = [
  {
    file: 'wide-tiles',
    kernel: 'all_widths',
    params: { x: input(i32), y: output(i32), ranks: output(i32) },
    launch: { grid: 2, block: BLOCK },
    given: { x, y: new Int32Array(2 * BLOCK), ranks: new Int32Array(3 * BLOCK) },
    results: {
      y: ints(2 * BLOCK, (i) => found(i, 64) + found(i, 128) + 1000 * found(i, 256)),
      ranks: ints(3 * BLOCK, (at) => {
        const [size, i] = [[64, 128, 256][Math.floor(at / BLOCK)]!, at % BLOCK];
        return (i % size) * 10_000 + Math.floor(i / size) * 100 + BLOCK / size + size;
      }),
    },
  },
  {
    file: 'wide-tiles',
    kernel: 'own_ways',
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 1, block: BLOCK },
    given: { x: reals, y: new Float32Array(BLOCK) },
    results: { y: ownWay() },
  },
  {
    file: 'wide-tiles',
    kernel: 'tiles_of_tiles',
    params: { x: input(i32), y: output(i32), places: output(i32) },
    launch: { grid: 1, block: BLOCK },
    given: { x: x.slice(0, BLOCK), y: new Int32Array(BLOCK), places: new Int32Array(BLOCK) },
    results: {
      y: ints(BLOCK, (i) => sum(tileOf(i, 4)) + 100 * Math.min(...tileOf(i, 64))),
      places: ints(BLOCK, (i) => {
        const four = Math.floor((i % 32) / 4);
        return Math.floor((i % 64) / 32) * 1000 + four * 10 + four * 100_000 + 8 + 8 + 2;
      }),
    },
  },
  {
    file: 'wide-tiles',
    kernel: 'wide_scans',
    params: { x: input(i32), sums: output(i32), before: output(i32) },
    launch: { grid: 1, block: BLOCK },
    given: { x: x.slice(0, BLOCK), sums: new Int32Array(BLOCK), before: new Int32Array(BLOCK) },
    results: { sums: ints(BLOCK, sums64), before: ints(BLOCK, (i) => sums64(i) - x[i]!) },
  },
  {
    file: 'wide-tiles',
    kernel: 'large_values',
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 1, block: 64 },
    given: { x: reals, y: new Float32Array(BLOCK) },
    results: { y: floats(BLOCK, (at) => largeValue(Math.floor(at / 4), at % 4)) },
  },
];
