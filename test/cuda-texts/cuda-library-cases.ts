// Sources that use CUDA's C++ library, and cooperative groups beyond blocks and tiles.
import { f32, i32, input, inout, output, u32 } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const numbers = ints(1024, (i) => ((i * 7919) % 211) - 100);
const zeros = (length: number): Int32Array => new Int32Array(length);
const sumOf = (values: Int32Array): number => values.reduce((a, b) => a + b, 0);
const first = (length: number): Int32Array => numbers.subarray(0, length);

const labels = ints(64, (i) => (i * i) % 5);
const bins = zeros(5);
for (const [i, label] of labels.entries()) bins[label]! += numbers[i]!;
function rankInHalf(i: number): number {
  const warp = [...first(64).subarray(i & ~31, (i & ~31) + 32)];
  const alike = (v: number): boolean => v > 0 === numbers[i]! > 0;
  return warp.slice(0, i & 31).filter(alike).length * 100 + warp.filter(alike).length;
}

function tileUpTo(i: number): Int32Array {
  return numbers.subarray(i & ~15, i + 1);
}

/** What three rounds of doubling and adding the neighbour make of a block of 64. */
function afterRounds(values: Int32Array, rounds: number): Int32Array {
  let now = values;
  for (let r = 0; r < rounds; r++) now = now.map((v, i) => 2 * v + now[(i + 1) % now.length]!);
  return now;
}

const positive = first(128).filter((v) => v > 0).length;
const most = Math.max(...first(128).map(Math.abs));

export const GROUP_CASES: readonly TextCase[] = [
  {
    file: 'group-partitions',
    kernel: 'labels',
    params: { label: input(i32), value: input(i32), bins: inout(i32), ranks: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { label: labels, value: first(64), bins: zeros(5), ranks: zeros(64) },
    results: { bins, ranks: ints(64, rankInHalf) },
  },
  {
    file: 'group-partitions',
    kernel: 'scans',
    params: { x: input(i32), sums: output(i32), before: output(i32), largest: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { x: first(64), sums: zeros(64), before: zeros(64), largest: zeros(64) },
    results: {
      sums: ints(64, (i) => sumOf(tileUpTo(i))),
      before: ints(64, (i) => sumOf(tileUpTo(i)) - numbers[i]!),
      largest: ints(64, (i) => Math.max(...tileUpTo(i))),
    },
  },
  {
    file: 'group-partitions',
    kernel: 'group_sums',
    params: { x: input(i32), of_block: output(i32), of_tiles: output(i32), tile_size: i32 },
    launch: { grid: 1, block: 128 },
    given: { x: first(128), of_block: zeros(1), of_tiles: zeros(16), tile_size: 8 },
    results: { of_block: Int32Array.of(sumOf(first(128))), of_tiles: ints(16, (t) => sumOf(numbers.subarray(8 * t, 8 * t + 8))) },
  },
];

export const CUDA_LIBRARY_CASES: readonly TextCase[] = [
  {
    file: 'cuda-barriers',
    kernel: 'arrive_then_wait',
    params: { x: input(i32), y: output(i32), rounds: i32 },
    launch: { grid: 2, block: 64 },
    given: { x: first(128), y: zeros(128), rounds: 3 },
    results: { y: Int32Array.from([...afterRounds(first(64), 3), ...afterRounds(numbers.subarray(64, 128), 3)]) },
  },
  {
    file: 'cuda-barriers',
    kernel: 'producer_consumer',
    params: { in: input(f32), out: output(f32), n: i32, length: i32 },
    launch: { grid: 1, block: 96, sharedBytes: 1024 },
    given: { in: floats(1024, (i) => i), out: floats(1024, () => 0), n: 1024, length: 128 },
    results: { out: floats(1024, (i) => 2 * (i + 1)) },
  },
  {
    file: 'cuda-pipelines',
    kernel: 'group_copies',
    params: { in: input(i32), out: output(i32), batches: i32 },
    launch: { grid: 1, block: 64 },
    given: { in: first(256), out: zeros(256), batches: 4 },
    results: { out: ints(256, (i) => numbers[i ^ 63]!) },
  },
  {
    file: 'cuda-pipelines',
    kernel: 'two_stages',
    params: { in: input(i32), out: output(i32), batches: i32 },
    launch: { grid: 1, block: 64 },
    given: { in: first(640), out: zeros(640), batches: 10 },
    results: { out: ints(640, (i) => 3 * numbers[i ^ 63]!) },
  },
  {
    file: 'cuda-pipelines',
    kernel: 'primitives',
    params: { in: input(i32), out: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { in: first(256), out: zeros(256) },
    results: { out: ints(256, (i) => numbers[i ^ 252]!) },
  },
  {
    file: 'cuda-atomics',
    kernel: 'atomics',
    params: { x: input(i32), counts: inout(i32), sum: inout(f32), last: inout(u32) },
    launch: { grid: 2, block: 64 },
    given: { x: first(128), counts: zeros(5), sum: new Float32Array(1), last: new Uint32Array(1) },
    results: {
      counts: Int32Array.of(positive, most, -most, 128, 256),
      sum: Float32Array.of(64),
      last: Uint32Array.of(2 ** 32 - 1),
    },
  },
];
