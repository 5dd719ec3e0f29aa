// The grid barrier's CUDA form, run with one system thread per thread of the grid: each block is a copy of the image, and the blocks
// synchronise through memory that the copies share. Also the CPU device's form of the same kernels, with a barrier of this test's program.
import { beforeAll, expect, test } from 'vitest';
import { IS_LONG } from '../../support/long.js';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout, input, type Kernel, output } from '../../../src/core/kernels/kernel.js';
import { MAX_STREAMS } from '../../../src/protocol/protocol.gen.js';
import { withText } from '../compiler/support.js';
import { buildOnThreads } from './on-threads.js';
import { BLOCK, RandomKernel } from './random-kernel.js';
import { type ImageArgument, i32 as int, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';
import { inOneSource } from './one-source.js';

const NO_LIMIT = 2 ** 31 - 1;
const TURNS = 7;
/** Spinning threads are slow on machines with few cores. */
const KERNELS = IS_LONG ? 3 : 2;
const images = imagesOfFile();

// Remaining threads count themselves once per iteration, and read the count after the barrier.
const leaving = kernel(
  'leaving',
  { until: input(i32), counts: inout(i32), seen: output(i32) },
  ({ until, counts, seen }, { i, atomicAdd, gridSync }) => {
    let last = 0;
    for (let turn = 0; turn < counts.length; turn++) {
      if (until[i]! <= turn) {
        seen[i] = last;
        return;
      }
      atomicAdd(counts, turn, 1);
      gridSync();
      last = counts[turn]!;
    }
    seen[i] = last;
  },
  { bounds: 'unchecked' },
);

/** The CUDA form of all kernels. */
function onThreads(kernels: readonly Kernel[]): string {
  const place = `static __device__ MrGrid mr_grids[${MAX_STREAMS}];`;
  const common = '__attribute__((visibility("default"))) extern MrGrid mr_grids[] __asm__("mr_grids");';
  for (const { source } of kernels) expect(source).toContain(place);
  const text = inOneSource(kernels).replaceAll(place, common);
  const entries = kernels.map(({ build }) => build.entry);
  return buildOnThreads(text, entries);
}

function inRegions(kernels: readonly Kernel[]): Promise<string> {
  const entries = kernels.map(({ build }) => build.entry);
  return images.built(specOf(inOneSource(kernels), entries[0]!, { identity: 'regions' }), entries);
}

interface Made {
  /** Some of its barriers are of the grid. */
  readonly wide: Kernel;
  /** All are of the block: blocks exchange nothing, so that the result is the same. */
  readonly plain: Kernel;
}

function randomKernels(bounds: 'checked' | 'unchecked', seed: number): Made[] {
  const made: Made[] = [];
  for (let at = seed; made.length < KERNELS && at < seed + 4000; at++) {
    const { text } = new RandomKernel(at, bounds === 'checked');
    let barriers = 0;
    const wide = text
      .replace('syncthreads, syncwarp', 'gridSync, syncthreads, syncwarp')
      .replaceAll('syncthreads();', (barrier) => (barriers++ % 2 === 0 ? 'gridSync();' : barrier));
    const params = { x: input(i32), y: inout(i32), n: i32, m: i32 };
    try {
      const one = {
        wide: kernel(`w${at}`, params, withText(wide), { bounds }),
        plain: kernel(`p${at}`, params, withText(text), { bounds }),
      };
      // A construct that is easy to get wrong: a loop or branch around a barrier, or a thread that returns before one.
      if (/^ {4,}MR_SYNC_GRID/m.test(one.wide.source)) made.push(one);
    } catch (error) {
      if (!(error instanceof CompileError) || error.diagnostics[0]!.code !== 'K401') throw new Error(wide, { cause: error });
    }
  }
  expect(made.length).toBe(KERNELS);
  return made;
}

const SETS = [
  ['checked', 1],
  ['unchecked', 30_001],
] as const;
let sets: readonly (readonly Made[])[];
/** The images of all kernels: their plain forms, and the wide ones as the CPU device and as a GPU run them. */
let [plainPath, regionsPath, threadsPath] = ['', '', ''];
beforeAll(async () => {
  sets = SETS.map(([bounds, seed]) => randomKernels(bounds, seed));
  const wide = sets.flat().map((one) => one.wide);
  plainPath = await inRegions(sets.flat().map((one) => one.plain));
  regionsPath = await inRegions(wide);
  threadsPath = onThreads([leaving, ...wide]);
}, 300_000);

test('threads and blocks synchronise, also after others have returned', { timeout: 120_000 }, () => {
  const [blocks, width] = [5, 6];
  for (const [title, endOf] of [
    ['all stay', () => 99],
    ['all leave at once', () => 3],
    ['blocks leave', (block) => (block * 2) % 9],
    ['the first thread leaves', (_block, thread) => (thread === 0 ? 0 : 99)],
    ['the first block leaves', (block) => (block === 0 ? 0 : 99)],
    ['all at different times', (block, thread) => (block * 5 + thread * 3) % 10],
  ] as readonly [string, (block: number, thread: number) => number][]) {
    for (const extent of [NO_LIMIT, blocks * width - 4]) {
      const until = Int32Array.from({ length: blocks * width }, (_, i) => endOf(Math.floor(i / width), i % width));
      const counts = new Int32Array(TURNS);
      const seen = new Int32Array(until.length);
      const args = [
        until,
        int(until.length),
        counts,
        int(TURNS),
        seen,
        int(seen.length),
        int(extent),
        int(NO_LIMIT),
        int(NO_LIMIT),
        int(77),
      ];
      images.run(threadsPath, leaving.build.entry, { grid: [blocks, 1, 1], block: [width, 1, 1], threads: 0 }, args);
      const within = until.subarray(0, Math.min(extent, until.length));
      const expected = Array.from({ length: TURNS }, (_, turn) => within.filter((end) => end > turn).length);
      expect([...counts], title).toEqual(expected);
      expect([...seen.subarray(0, within.length)], title).toEqual(
        [...within].map((end) => (end === 0 ? 0 : expected[Math.min(end, TURNS) - 1]!)),
      );
    }
  }
});

test.each(SETS.map(([bounds, seed], at) => [bounds, seed, at] as const))(
  '%s kernels at random, from %d, give what they give without waiting for other blocks',
  { timeout: 300_000 },
  (_bounds, _seed, at) => {
    const run = (path: string, { build }: Kernel, extent: number, n: number, threads: number): { y: number[]; hasReported: boolean } => {
      const x = Int32Array.from({ length: 900 }, (_, i) => (i * 7) % 53);
      const y = Int32Array.from({ length: Math.min(extent, 3 * BLOCK) }, (_, i) => i % 3);
      const slot = new Uint32Array(16);
      const args: ImageArgument[] = [x, int(x.length), y, int(y.length), int(n), int(n + 3), int(extent), int(NO_LIMIT), int(NO_LIMIT)];
      if (build.syncsGrid) args.push(int(5));
      if (build.isChecked) args.push(slot, new Uint32Array(1));
      images.run(path, build.entry, { grid: [3, 1, 1], block: [BLOCK, 1, 1], threads }, args);
      return { y: [...y], hasReported: slot[0] !== 0 };
    };
    for (const { wide: one, plain } of sets[at]!) {
      // Without a tail, and with one.
      for (const [extent, n] of [
        [NO_LIMIT, 2],
        [3 * BLOCK - 17, 5],
      ] as const) {
        const expected = run(plainPath, plain, extent, n, 1);
        for (const path of [regionsPath, threadsPath]) expect(run(path, one, extent, n, 0), one.source).toEqual(expected);
      }
    }
  },
);

test.skipIf(!hasNvcc)('nvcc compiles the source (skipped where there is no nvcc)', { timeout: 60_000 }, () =>
  checkWithNvcc([leaving.source], ['-arch=sm_90']),
);
