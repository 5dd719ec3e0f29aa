// Kernels whose threads wait for each other on the CPU device, compared with the same computation in JavaScript, in blocks of one thread,
// about one warp, the maximum size, and three dimensions.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { kernelNames } from '../../../src/cuda-cpp/lower/rewrite.js';
import { i32, specOf, type ImageArgument, type ImageLaunch } from './run-image.js';
import { imagesOfFile } from './images.js';

const SOURCE_FILE = fileURLToPath(new URL('./waiting.cu', import.meta.url));
const SOURCE = readFileSync(SOURCE_FILE, 'utf8');
const BLOCKS = [1, 31, 32, 33, 100, 1024];

const images = imagesOfFile();
let image: string;

beforeAll(async () => {
  image = await images.built(specOf(SOURCE, 'sort_block'), kernelNames(SOURCE));
}, 60_000);

function run(entry: string, launch: ImageLaunch, ...args: ImageArgument[]): void {
  images.run(image, entry, launch, args);
}
const line = (grid: number, block: number): ImageLaunch => ({ grid: [grid, 1, 1], block: [block, 1, 1] });
const range = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_unused, i) => of(i));

test.skipIf(!hasNvcc)('nvcc compiles the same source (skipped where there is no nvcc)', { timeout: 60_000 }, () =>
  checkWithNvcc([SOURCE], ['-arch=sm_90']),
);

test.each([
  [1, 1, 1],
  [33, 1, 1],
  [5, 7, 1],
  [4, 3, 9],
  [1, 1, 64],
  [16, 8, 8],
] as const)('dynamic shared memory in parts, blocks of %d x %d x %d', (...block) => {
  const count = block[0] * block[1] * block[2];
  const x = Int32Array.from({ length: 6 * count }, (_, i) => i * 3);
  const y = new Int32Array(6 * count);
  run('reverse_block', { grid: [2, 1, 3], block, sharedBytes: 6 * count }, x, y);
  expect([...y]).toEqual(range(6 * count, (i) => (Math.floor(i / count) * count + count - 1 - (i % count)) * 3));
});

test.each(BLOCKS)('a sort that ends by a barrier with a vote, blocks of %d', (block) => {
  const x = Int32Array.from({ length: block }, (_, i) => (i * 7919) % 101);
  const sorted = x.slice();
  run('sort_block', line(1, block), sorted, new Int32Array(1));
  expect(sorted).toEqual(x.toSorted());
});

test.each(BLOCKS)('barriers with votes, blocks of %d', (block) => {
  const y = new Int32Array(block);
  run('block_votes', line(1, block), y);
  const isNotAll = block > 1 ? 0 : 4;
  expect(new Set(y)).toEqual(new Set([Math.ceil(block / 3) * 16 + 8 + isNotAll + 2]));
});

test.each(BLOCKS)('barriers with votes in one expression, blocks of %d', (block) => {
  const y = new Int32Array(block);
  run('votes_together', line(1, block), y);
  expect(new Set(y)).toEqual(new Set([Math.ceil(block / 3) * 100 + Math.ceil(block / 2) * 2]));
});

test('all barriers of a block are one barrier, and masks that never complete are answered', () => {
  const y = new Int32Array(40);
  run('split_barriers', line(1, 40), y);
  expect([...y]).toEqual(range(40, (t) => (t === 0 ? 12 : t % 2 ? 1 : 2)));
});

test.each([
  [1, 32],
  [0, 32],
  [31, 32],
  [3, 8],
  [5, 4],
  [17, 16],
  [40, 32],
])('shuffles by %d in parts of %d lanes', (by, width) => {
  const block = 70;
  /** Undefined for a lane that does not exist, whose value is 0. */
  const read = (way: number, t: number): number | undefined => {
    const lane = t % 32;
    const first = lane - (lane % width);
    const wanted = [first + (by % width), lane - by < first ? lane : lane - by, lane + by, lane ^ by][way]!;
    const source = wanted < first + width ? wanted : lane;
    const from = t - lane + source;
    return from < block ? from : undefined;
  };
  const [i, u, f, d] = [new Int32Array(4 * block), new BigUint64Array(4 * block), new Float32Array(4 * block), new Float64Array(4 * block)];
  run('shuffles', line(1, block), i32(by), i32(width), i, u, f, d);
  const sources = range(4 * block, (at) => read(Math.floor(at / block), at % block));
  expect([...i]).toEqual(sources.map((t) => (t === undefined ? 0 : 100 - t)));
  expect([...u]).toEqual(sources.map((t) => (t === undefined ? 0n : 5_000_000_000n + BigInt(t))));
  expect([...f]).toEqual(sources.map((t) => (t === undefined ? 0 : 0.5 + t)));
  expect([...d]).toEqual(sources.map((t) => (t === undefined ? 0 : 1e100 + 1e90 * t)));
});

/** The threads of the warp of `t`. */
const warpOf = (t: number, block: number): number[] => range(32, (lane) => t - (t % 32) + lane).filter((other) => other < block);
const bits = (threads: readonly number[]): number => threads.reduce((mask, t) => (mask | (1 << (t % 32))) >>> 0, 0);

test.each([1, 20, 32, 45, 64])('votes, matches and reductions, blocks of %d', (n) => {
  const y = new Uint32Array(6 * n);
  run('votes', line(1, n), y);
  const u = new Uint32Array(2 * n);
  const i = new Int32Array(n);
  run('reductions', line(1, n), u, i);
  for (let t = 0; t < n; t++) {
    const warp = warpOf(t, n);
    const areEqual = warp.every((other) => Math.floor(other / 31) === Math.floor(warp[0]! / 31));
    expect(
      range(6, (part) => y[part * n + t]),
      `thread ${t}`,
    ).toEqual([
      bits(warp.filter((other) => other % 3 === 1)),
      (warp.includes(5) ? 2 : 0) + (warp.every((other) => other < 40) ? 1 : 0),
      bits(warp.filter((other) => Math.floor(other / 5) === Math.floor(t / 5))),
      bits(warp),
      1 + (areEqual ? 10 : 0),
      areEqual ? 1 : 0,
    ]);
    const sum = warp.reduce((a, other) => a + other + 1, 0);
    const [low, high] = [Math.min(...warp), Math.max(...warp)];
    expect(u[t]).toBe((sum + (low + 7) * 10_000 + high * 1_000_000) >>> 0);
    expect(i[t]).toBe((3 - high) * 100 + 3 - low);
    const [and, or, xor] = [
      warp.reduce((a, other) => a & (other | 8), -1),
      warp.reduce((a, other) => a | other, 0),
      warp.reduce((a, other) => a ^ (other * other), 0),
    ];
    expect(u[n + t]).toBe((and | (or << 8) | (xor << 16)) >>> 0);
  }
});

test('warp primitives do not wait for lanes outside the mask or lanes that returned', () => {
  const y = new Uint32Array(64);
  run('masks', line(1, 64), y);
  const first = 0xff + 1000 * 28 + 1;
  const others = 0xffff00 + 9 + 1;
  expect([...y]).toEqual(range(64, (t) => (t % 32 < 8 ? first : t % 32 < 24 ? others : 0)));
});

test.each([20, 64])('lanes that vote with masks without themselves, blocks of %d', (block) => {
  const y = new Uint32Array(block);
  run('votes_below', line(1, block), y);
  const votes = (t: number): number =>
    range(t % 32, (lane) => ((t - (t % 32) + lane) % 3 === 0 ? 2 ** lane : 0)).reduce((a, b) => a + b, 0);
  expect([...y]).toEqual(range(block, votes));
});

test.each([1, 32, 50])('calls that wait in every kind of expression, blocks of %d', (n) => {
  const y = new Int32Array(3 * n);
  run('expressions', line(1, n), y);
  for (let t = 0; t < n; t++) {
    let v = t % 2 ? 1 : 10;
    v += 100 + (t % 2 ? 1000 : 2000) + (t < 4 ? t : 7) * 10_000;
    v += [100_000, 500_000, 300_000][t % 3]!;
    expect(y[t], `thread ${t}`).toBe(v);
    expect(y[n + t]).toBe(323 + 9000 + 1_000_000 * 5 + 10_000_000 * 12 + 100_000);
    expect(y[2 * n + t]).toBe(120 + 2 * t * 1000 + 2);
  }
});

test.each([0, 1, -2])('an expression calls only the operand that it selects, c = %d', (c) => {
  // Results and numbers of calls, counted by hand as C++ has it.
  const y = new Int32Array(32);
  const calls = new Int32Array(32);
  run('conditionals', line(1, 1), i32(c), y, calls);
  const isSet = c !== 0;
  const rows: readonly (readonly [value: number, calls: number])[] = [
    isSet ? [5, 1] : [7, 0],
    isSet ? [5, 0] : [14, 1],
    isSet ? [1, 1] : [0, 0],
    isSet ? [0, 1] : [1, 0],
    isSet ? [0, 3] : [0, 1],
    c > 0 ? [1, 1] : isSet ? [1, 2] : [0, 0],
    isSet ? [100, 1] : [200, 0],
    isSet ? [3, 3] : [3, 6],
    isSet ? [3, 4] : [2, 5],
    isSet ? [10, 1] : [20, 0],
    isSet ? [130, 1] : [231, 0],
    c > 0 ? [4, 1] : isSet ? [60, 1] : [50, 1],
    isSet ? [11 + 100, 1] : [4 + 1100, 1],
    isSet ? [12, 2] : [34, 0],
    isSet ? [2 * c + 1000, 3] : [999, 2],
    isSet ? [3, 0] : [1, 0],
  ];
  expect(rows.map((_unused, at) => [y[at], calls[at]])).toEqual(rows);
});

test.each([1, 40, 1024])('lambdas that wait: named, as arguments, and called in place; blocks of %d', (n) => {
  const y = new Int32Array(n);
  run('lambdas', line(1, n), y);
  expect([...y]).toEqual(range(n, () => 1 + n + 60_000 + 100_000 + 2_000_000));
});

test('functions that wait are called often, and have large local arrays', () => {
  const y = new Int32Array(64);
  run('many_calls', line(2, 64), y, i32(20_000));
  expect([...y]).toEqual(range(64, () => 20_000));
  run('large_frames', line(3, 64), y);
  expect([...y]).toEqual(range(64, (t) => 4_498_500 * t));
});

test.each([32, 64, 256])('cooperative groups, blocks of %d', (n) => {
  const y = new Int32Array(4 * n);
  run('groups', line(1, n), y);
  for (let t = 0; t < n; t++) {
    const tile = range(8, (i) => t - (t % 8) + i);
    expect(y[t], `thread ${t}`).toBe(tile.reduce((a, other) => a + n - 1 - other, 0));
    expect(y[n + t]).toBe(warpOf(t, n).reduce((a, v) => a + v, 0) + (tile[7]! % 2 ** 31) * 10_000);
    expect(y[2 * n + t]).toBe(0b10101010 + 1000 * (t >> 3) + (t < 8 ? 100_000 : 0) + 1_000_000);
    expect(y[3 * n + t]).toBe(t % 32 < 5 ? 500 + (t % 32) * 10 + 4 : 0);
  }
});

test('the grid as a group counts blocks and threads, x fastest', () => {
  const y = new BigUint64Array(24 * 24 + 5);
  run('grid_ranks', { grid: [4, 3, 2], block: [4, 3, 2] }, y);
  const ranks = range(24 * 24, (i) => BigInt(i + 1000 * Math.floor(i / 24)));
  expect([...y]).toEqual([...ranks, 576n, 24n, 0n, 309n, 0n]);
});
