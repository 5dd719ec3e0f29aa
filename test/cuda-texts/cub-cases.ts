// Sources that use CUB's collective functions of blocks and warps.
import { f32, i32, input, inout, output, u32, u8 } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const numbers = ints(1024, (i) => ((i * 7919) % 1009) - 500);
const zeros = (length: number): Int32Array => new Int32Array(length);
const sumOf = (values: Int32Array | Float32Array): number => [...values].reduce((a, b) => a + b, 0);

/** What `scan` makes of the values, in groups of a length. */
function scanned(values: Int32Array, group: number, by: (before: number, value: number) => number, initial: number): Int32Array {
  let running = initial;
  return values.map((value, i) => (running = by(i % group === 0 ? initial : running, value)));
}

const tile = numbers.subarray(0, 64);
const [largest, sums] = [scanned(tile, 16, Math.max, -1000), scanned(tile, 16, (a, b) => a + b, 0)];
const least = scanned(tile, 64, Math.min, 1000);
const warpScans = Int32Array.from(
  Array.from(tile, (_unused, i) => [
    largest[i]!,
    i % 16 === 0 ? -1000 : largest[i - 1]!,
    sums[i]!,
    sums[i | 15]!,
    least[i]!,
    Math.min(...tile),
  ]).flat(),
);

const blocksOf = (length: number, values: Int32Array): Int32Array[] =>
  Array.from({ length: values.length / length }, (_unused, b) => values.subarray(b * length, (b + 1) * length));
const compacted = blocksOf(128, numbers.subarray(0, 512)).map((block) => block.filter((v) => v > 0));

/** Of each block of 128 threads with three items: the sum, and the largest first item of 100 threads. */
const blockSums = blocksOf(384, numbers.subarray(0, 768)).flatMap((block) => [
  sumOf(block),
  Math.max(...block.filter((_unused, i) => i % 3 === 0 && i < 300)),
]);
const extents = blocksOf(384, numbers.subarray(0, 768)).flatMap((block) => [
  Math.min(...block.filter((_unused, i) => i % 3 === 0)),
  Math.max(...block.filter((_unused, i) => i % 3 === 2)),
]);

const keys = floats(512, (i) => (i % 41 === 0 ? -0 : ((i * 37) % 101) / 4 - 12));
/** The order of each tile of 128: even ones ascending, odd ones descending; equal keys keep their order. */
const order = Array.from({ length: 4 }, (_unused, t) => {
  const own = Array.from({ length: 128 }, (_item, i) => t * 128 + i);
  return own.toSorted((a, b) => (t % 2 === 0 ? keys[a]! - keys[b]! : keys[b]! - keys[a]!));
}).flat();

const words = Uint32Array.from({ length: 128 }, (_unused, i) => (i * 2654435761) % 5000);
const samples = Uint8Array.from({ length: 1024 }, (_unused, i) => (i * i) >> 9);
const bins = new Uint32Array(256);
for (const sample of samples) bins[sample]!++;

const matrix = floats(8 * 40, (i) => ((i * 31) % 64) - 20);
const segmentOf = (i: number): number => Math.floor(i / 5);
const isHead = (i: number): boolean => i % 32 === 0 || segmentOf(i) !== segmentOf(i - 1);

function segmentSum(from: number): number {
  let sum = numbers[from]!;
  for (let i = from + 1; i < 64 && !isHead(i); i++) sum += numbers[i]!;
  return sum;
}

export const CUB_CASES: readonly TextCase[] = [
  {
    file: 'cub-block-sums',
    kernel: 'block_sums',
    params: { in: input(i32), sums: output(i32), extents: output(f32), n: i32 },
    launch: { grid: 2, block: 128 },
    given: { in: numbers.subarray(0, 768), sums: zeros(4), extents: new Float32Array(4), n: 768 },
    results: { sums: Int32Array.from(blockSums), extents: Float32Array.from(extents) },
  },
  {
    file: 'cub-scans',
    kernel: 'running_sums',
    params: { data: input(i32), sums: output(i32), num_items: i32 },
    launch: { grid: 1, block: 64 },
    given: { data: numbers.subarray(0, 900), sums: zeros(900), num_items: 900 },
    results: { sums: scanned(numbers.subarray(0, 900), 900, (a, b) => a + b, 0) },
  },
  {
    file: 'cub-scans',
    kernel: 'compact',
    params: { in: input(i32), out: inout(i32), counts: output(i32) },
    launch: { grid: 4, block: 128 },
    given: { in: numbers.subarray(0, 512), out: zeros(512), counts: zeros(4) },
    results: {
      out: Int32Array.from(compacted.flatMap((block) => [...block, ...zeros(128 - block.length)])),
      counts: Int32Array.from(compacted, (block) => block.length),
    },
  },
  {
    file: 'cub-scans',
    kernel: 'warp_scans',
    params: { in: input(i32), out: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { in: tile, out: zeros(384) },
    results: { out: warpScans },
  },
  {
    file: 'cub-sorts',
    kernel: 'sort_parts',
    params: { in: input(u32), by_byte: output(u32), by_less: output(u32) },
    launch: { grid: 1, block: 64 },
    given: { in: words, by_byte: new Uint32Array(128), by_less: new Uint32Array(128) },
    results: { by_byte: words.toSorted((a, b) => (a & 255) - (b & 255)), by_less: words.toSorted((a, b) => b - a) },
  },
  {
    file: 'cub-sorts',
    kernel: 'differences',
    params: { in: input(i32), left: output(i32), moved: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { in: numbers.subarray(0, 128), left: zeros(128), moved: zeros(256) },
    results: {
      left: ints(128, (i) => (i === 0 ? numbers[0]! : numbers[i]! - numbers[i - 1]!)),
      moved: ints(256, (at) => {
        const t = at >> 2;
        return [t < 63 ? numbers[2 * t + 2]! : -1, numbers[2 * ((t + 3) % 64) + 1]!, t > 0 ? numbers[2 * t - 1]! : 7, numbers[2 * t]!][
          at & 3
        ]!;
      }),
    },
  },
  {
    file: 'cub-sorts',
    kernel: 'histogram',
    params: { samples: input(u8), bins: inout(u32), flags: output(i32) },
    launch: { grid: 2, block: 128 },
    given: { samples, bins: new Uint32Array(256), flags: zeros(1024) },
    results: { bins, flags: ints(1024, (i) => (i % 512 === 0 || samples[i] !== samples[i - 1] ? 1 : 0)) },
  },
  {
    file: 'cub-warps',
    kernel: 'row_sums',
    params: { x: input(f32), sums: output(f32), largest: output(i32), columns: i32 },
    launch: { grid: 2, block: 128 },
    given: { x: matrix, sums: new Float32Array(8), largest: zeros(32), columns: 40 },
    results: {
      sums: floats(8, (r) => sumOf(matrix.subarray(40 * r, 40 * r + 40))),
      largest: ints(32, (g) => Math.max(...matrix.subarray(40 * (g >> 2) + 8 * (g & 3), 40 * (g >> 2) + 8 * (g & 3) + 8))),
    },
  },
  {
    file: 'cub-warps',
    kernel: 'segments',
    params: { keys: input(i32), values: input(i32), sums: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { keys: ints(64, segmentOf), values: numbers.subarray(0, 64), sums: zeros(64) },
    results: { sums: ints(64, (i) => (isHead(i) ? segmentSum(i) : 0)) },
  },
];

export const CUB_TEMPLATE_CASES: readonly TextCase[] = [
  {
    file: 'cub-block-sums',
    kernel: 'block_sum_kernel<float, 64, cub::BLOCK_REDUCE_WARP_REDUCTIONS>',
    params: { in: input(f32), out: inout(f32), n: i32 },
    launch: { grid: 4, block: 64 },
    given: { in: matrix, out: new Float32Array(1), n: 250 },
    results: { out: Float32Array.of(sumOf(matrix.subarray(0, 250))) },
  },
  {
    file: 'cub-block-sums',
    kernel: 'block_sum_kernel<int, 96, cub::BLOCK_REDUCE_RAKING>',
    params: { in: input(i32), out: inout(i32), n: i32 },
    launch: { grid: 4, block: 96 },
    given: { in: numbers.subarray(0, 384), out: zeros(1), n: 300 },
    results: { out: Int32Array.of(sumOf(numbers.subarray(0, 300))) },
  },
  {
    file: 'cub-sorts',
    kernel: 'sort_tiles<32, 4>',
    params: { keys_in: input(f32), values_in: input(i32), keys_out: output(f32), values_out: output(i32) },
    launch: { grid: 4, block: 32 },
    given: { keys_in: keys, values_in: ints(512, (i) => i), keys_out: new Float32Array(512), values_out: zeros(512) },
    results: { keys_out: floats(512, (i) => keys[order[i]!]!), values_out: ints(512, (i) => order[i]!) },
  },
];
