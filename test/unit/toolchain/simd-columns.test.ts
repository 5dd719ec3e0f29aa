// Regions that run column by column (src/compiler/simd/column-order.ts): which ones qualify, and their results, in blocks whose rows fill
// one SIMD group, several, or none.
import { expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { f32, inout, input, kernel } from '../../../src/index.js';
import { IS_LONG } from '../../support/long.js';
import { simdImages, withSimd, WIDTHS } from './simd-images.js';
import { i32 as int } from './run-image.js';

const [HEIGHT, WIDTH] = [37, 150];
const BLOCKS = [
  [16, 16, 1],
  [7, 9, 1],
  [64, 8, 1],
  [40, 16, 1],
] as const;

/** Values of two types that cross regions; loops that threads leave, threads that return, and indices outside x. */
const columns = (bounds: 'checked' | 'unchecked'): Kernel =>
  kernel(
    'columns',
    { x: input(f32, 2), y: inout(f32, 2) },
    ({ x, y }, { i, j, threadIdx, shared, syncthreads }) => {
      const tile = shared(f32, [16, 64]);
      let sum = 0;
      let isOdd = false;
      for (let first = 0; first < 48; first += 16) {
        tile[threadIdx.y]![threadIdx.x] = x[i]![j]! + first;
        syncthreads();
        for (let k = 0; k < 7; k++) {
          const half = k >> 1;
          if (sum > 25) break;
          if ((k & 1) === 1) sum += tile[0]![threadIdx.x]! * half;
          else sum += tile[threadIdx.y]![threadIdx.x]!;
        }
        isOdd = !isOdd && sum > 1;
        if (sum > 80) return;
        syncthreads();
      }
      y[i]![j] = isOdd ? sum : -sum;
    },
    { bounds, fmad: false },
  ) as unknown as Kernel;

const images = simdImages();

/** The contents of y after a launch, and whether a thread reported a fault; x may have fewer rows than threads use. */
function launch(image: string, { build }: Kernel, block: (typeof BLOCKS)[number], rows: number): { y: number[]; hasReported: boolean } {
  const x = Float32Array.from({ length: rows * WIDTH }, (_, at) => ((at * 7919) % 101) / 16);
  const y = new Float32Array(HEIGHT * WIDTH);
  const [fault, word] = [new Uint32Array(16), new Uint32Array(1)];
  const extents = [int(WIDTH), int(HEIGHT), int(1)];
  const args = [x, int(rows), int(WIDTH), y, int(HEIGHT), int(WIDTH), ...extents, ...(build.isChecked ? [fault, word] : [])];
  const grid = [Math.ceil(WIDTH / block[0]), Math.ceil(HEIGHT / block[1]), 1] as const;
  images.run(image, build.entry, { grid, block, threads: 1 }, args);
  return { y: [...y], hasReported: fault[0] !== 0 };
}

// With masks and without.
test.each(WIDTHS.filter((_, at) => IS_LONG || at !== 1))(
  'vectors of %s bytes give the same bits as one thread after the other',
  async (bytes) => {
    for (const bounds of ['checked', 'unchecked'] as const) {
      const made = columns(bounds);
      const spec = withSimd(made, bytes);
      expect(spec.simdSource).toContain('MR_FULL_GROUPS_BY_COLUMN');
      const expected = await images.built(writtenOf(made, 'off'));
      const actual = await images.built(spec);
      for (const block of BLOCKS) {
        const left = launch(expected, made, block, HEIGHT);
        expect(launch(actual, made, block, HEIGHT), `blocks of ${block.join(' x ')}`).toEqual(left);
        expect(new Set(left.y).size).toBeGreaterThan(50);
        if (bounds === 'unchecked') continue;
        const fewer = launch(expected, made, block, HEIGHT - 5);
        expect(fewer.hasReported).toBe(true);
        expect(launch(actual, made, block, HEIGHT - 5), `blocks of ${block.join(' x ')}`).toEqual(fewer);
      }
    }
  },
);

function waysOf(made: object): string[] {
  return writtenOf(made, 'always').simdSource!.match(/MR_FULL_GROUPS\w*/g) ?? [];
}

test('only regions that write no memory, and whose rows read the same elements', () => {
  const params = { x: input(f32, 2), y: inout(f32, 2) };
  const alike = kernel('alike', params, ({ x, y }, { i, j, threadIdx, shared, syncthreads }) => {
    const tile = shared(f32, [16, 16]);
    tile[threadIdx.y]![threadIdx.x] = x[i]![j]!;
    syncthreads();
    let sum = 0;
    for (let k = 0; k < 16; k++) sum += tile[k]![threadIdx.x]!;
    syncthreads();
    y[i]![j] = sum;
  });
  expect(waysOf(alike)).toEqual(['MR_FULL_GROUPS', 'MR_FULL_GROUPS_BY_COLUMN', 'MR_FULL_GROUPS']);
  const ofRows = kernel('ofRows', params, ({ x, y }, { i, j, threadIdx, shared, syncthreads }) => {
    const tile = shared(f32, [16, 16]);
    tile[threadIdx.y]![threadIdx.x] = x[i]![j]!;
    syncthreads();
    let sum = 0;
    for (let k = threadIdx.y; k < 16; k++) sum += tile[k]![threadIdx.x]!;
    for (let k = 0; k < 16; k++) sum += tile[threadIdx.y]![k]!;
    syncthreads();
    y[i]![j] = sum;
  });
  expect(waysOf(ofRows)).toEqual(['MR_FULL_GROUPS', 'MR_FULL_GROUPS', 'MR_FULL_GROUPS']);
  const storing = kernel('storing', params, ({ x, y }, { i, j, threadIdx, shared, syncthreads }) => {
    const tile = shared(f32, [16, 16]);
    tile[threadIdx.y]![threadIdx.x] = x[i]![j]!;
    syncthreads();
    for (let k = 0; k < 16; k++) y[i]![j] = y[i]![j]! + tile[k]![threadIdx.x]!;
  });
  expect(waysOf(storing)).toEqual(['MR_FULL_GROUPS', 'MR_FULL_GROUPS']);
  const asserting = kernel('asserting', params, ({ x }, { i, j, threadIdx, shared, syncthreads, assert }) => {
    const tile = shared(f32, [16, 16]);
    tile[threadIdx.y]![threadIdx.x] = x[i]![j]!;
    syncthreads();
    for (let k = 0; k < 16; k++) assert(tile[k]![threadIdx.x]! < 4);
  });
  expect(waysOf(asserting)).toEqual(['MR_FULL_GROUPS', 'MR_FULL_GROUPS']);
});
