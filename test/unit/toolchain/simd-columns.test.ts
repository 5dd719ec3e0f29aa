// Regions that run column by column (src/compiler/simd/column-order.ts): which ones qualify, and their results, in blocks whose rows fill
// one SIMD group, several, or none.
import { beforeAll, expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { f32, inout, input, kernel } from '../../../src/index.js';
import { IS_LONG } from '../../support/long.js';
import { simdImages, withSimd, WIDTHS } from './simd-images.js';
import { builtTogether } from './one-source.js';
import { type ImageRun, i32 as int } from './run-image.js';

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
    `columns_${bounds}`,
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

/** A launch; the contents of y after it, and what a thread reported. x may have fewer rows than threads use. */
function launchOf(
  image: string,
  { build }: Kernel,
  block: (typeof BLOCKS)[number],
  rows: number,
): { readonly run: ImageRun; readonly left: { readonly y: Float32Array; readonly fault: Uint32Array } } {
  const x = Float32Array.from({ length: rows * WIDTH }, (_, at) => ((at * 7919) % 101) / 16);
  const y = new Float32Array(HEIGHT * WIDTH);
  const [fault, word] = [new Uint32Array(16), new Uint32Array(1)];
  const extents = [int(WIDTH), int(HEIGHT), int(1)];
  const args = [x, int(rows), int(WIDTH), y, int(HEIGHT), int(WIDTH), ...extents, ...(build.isChecked ? [fault, word] : [])];
  const grid = [Math.ceil(WIDTH / block[0]), Math.ceil(HEIGHT / block[1]), 1] as const;
  return { run: [image, build.entry, { grid, block, threads: 1 }, args], left: { y, fault } };
}

// With masks and without.
const SOME_WIDTHS = WIDTHS.filter((_, at) => IS_LONG || at !== 1);
const MADE = [columns('checked'), columns('unchecked')];
/** The images of both kernels in scalar form, and in each width. */
const built = new Map<string, readonly string[]>();
beforeAll(async () => {
  const forms = ['off', ...SOME_WIDTHS];
  const specs = forms.flatMap((form) => MADE.map((made) => (form === 'off' ? writtenOf(made, 'off') : withSimd(made, form))));
  const paths = await builtTogether(images, specs);
  for (const [at, form] of forms.entries()) built.set(form, paths.slice(2 * at, 2 * at + 2));
}, 60_000);

test.each(SOME_WIDTHS)('vectors of %s bytes give the same bits as one thread after the other', (bytes) => {
  for (const [at, made] of MADE.entries()) {
    expect(withSimd(made, bytes).simdSource).toContain('MR_FULL_GROUPS_BY_COLUMN');
    const cases = BLOCKS.flatMap((block) => (made.build.isChecked ? [HEIGHT, HEIGHT - 5] : [HEIGHT]).map((rows) => ({ block, rows })));
    const launches = cases.map(({ block, rows }) => ['off', bytes].map((form) => launchOf(built.get(form)![at]!, made, block, rows)));
    images.runAll(launches.flat().map(({ run }) => run));
    for (const [n, [expected, actual]] of launches.entries()) {
      const { block, rows } = cases[n]!;
      expect(actual!.left.y, `blocks of ${block.join(' x ')}`).toEqual(expected!.left.y);
      expect(actual!.left.fault[0] !== 0).toBe(rows < HEIGHT);
      expect(expected!.left.fault[0] !== 0).toBe(rows < HEIGHT);
      if (rows === HEIGHT) expect(new Set(expected!.left.y).size).toBeGreaterThan(50);
    }
  }
});

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
