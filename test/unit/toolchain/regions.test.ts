// The CPU device's form of kernels with barriers, compared with the CUDA form run by one system thread per thread of a block. A barrier
// that some threads do not reach would hang the latter.
import { beforeAll, expect, test } from 'vitest';
import { IS_LONG } from '../../support/long.js';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout, input, type Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { withText } from '../compiler/support.js';
import { buildOnThreads } from './on-threads.js';
import { BLOCK, RandomKernel } from './random-kernel.js';
import { type ImageArgument, type ImageRun, i32 as int, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';
import { inOneSource } from './one-source.js';

const KERNELS = IS_LONG ? 8 : 4;
/** Most random sources have a barrier that some threads may not reach. */
const ATTEMPTS = 4000;
const NO_LIMIT = 2 ** 31 - 1;

const images = imagesOfFile();

/** Kernels with barriers, from the seed on. */
function kernelsFrom(seed: number, bounds: 'checked' | 'unchecked'): Kernel[] {
  const made: Kernel[] = [];
  for (let at = seed; made.length < KERNELS && at < seed + ATTEMPTS; at++) {
    const { text } = new RandomKernel(at, bounds === 'checked');
    try {
      const one = kernel(`r${at}`, { x: input(i32), y: inout(i32), n: i32, m: i32 }, withText(text), { bounds });
      if (hasUnevenFlow(one)) made.push(one);
    } catch (error) {
      if (!(error instanceof CompileError) || error.diagnostics[0]!.code !== 'K401') {
        throw new Error(text, { cause: error });
      }
    }
  }
  expect(made.length).toBe(KERNELS);
  return made;
}

/** A construct that is easy to get wrong: a loop or branch around a barrier, or a thread that returns before one. */
function hasUnevenFlow({ source }: Kernel): boolean {
  return /^ {4,}MR_SYNCTHREADS/m.test(source);
}

function buildRegions(kernels: readonly Kernel[]): Promise<string> {
  const entries = kernels.map(({ build }) => build.entry);
  return images.built(specOf(inOneSource(kernels), entries[0]!, { identity: 'regions' }), entries);
}

function buildThreads(kernels: readonly Kernel[]): string {
  const entries = kernels.map(({ build }) => build.entry);
  return buildOnThreads(inOneSource(kernels), entries);
}

/** A launch, and what it leaves in y and in the slot of a fault. */
function launchOf(
  path: string,
  made: Kernel,
  length: number,
  extent: number,
  n: number,
): { run: ImageRun; y: Int32Array; slot: Uint32Array } {
  const x = Int32Array.from({ length: 900 }, (_, at) => (at * 7) % 53);
  const y = Int32Array.from({ length }, (_, at) => at % 3);
  const slot = new Uint32Array(16);
  const args: ImageArgument[] = [x, int(x.length), y, int(length), int(n), int(n + 3), int(extent), int(NO_LIMIT), int(NO_LIMIT)];
  if (made.build.isChecked) args.push(slot, new Uint32Array(1));
  return { run: [path, made.build.entry, { grid: [3, 1, 1], block: [BLOCK, 1, 1], threads: 1 }, args], y, slot };
}

const SETS = [['checked', 1], ...(IS_LONG ? ([['checked', 20_001]] as const) : []), ['unchecked', 40_001]] as const;
let sets: readonly (readonly Kernel[])[];
/** Of all kernels: what is tested, and what it is compared with. */
let paths: readonly [regions: string, threads: string];
beforeAll(async () => {
  sets = SETS.map(([bounds, seed]) => kernelsFrom(seed, bounds));
  paths = [await buildRegions(sets.flat()), buildThreads(sets.flat())];
}, 300_000);

test.each(SETS.map(([bounds, seed], at) => [bounds, seed, at] as const))(
  '%s kernels at random, from %d',
  { timeout: 300_000 },
  (bounds, _, at) => {
    // Without a tail, and with one.
    const cases = sets[at]!.flatMap((made) =>
      [[NO_LIMIT, 2] as const, [3 * BLOCK - 17, 5] as const].map(([extent, n]) => ({
        made,
        launches: paths.map((path) => launchOf(path, made, Math.min(extent, 3 * BLOCK), extent, n)),
      })),
    );
    images.runAll(cases.flatMap(({ launches }) => launches.map(({ run }) => run)));
    let reports = 0;
    for (const { made, launches } of cases) {
      const [actual, expected] = launches.map(({ y, slot }) => ({ y, hasReported: slot[0] !== 0 }));
      expect(actual, made.source).toEqual(expected);
      if (expected!.hasReported) reports++;
    }
    if (bounds === 'checked') expect(reports).toBeGreaterThan(KERNELS);
  },
);

test('print writes whole lines, of every type, from both sides of a barrier', async () => {
  const made = kernel('told', { x: inout(f32) }, ({ x }, { i, print, syncthreads, u32, f64 }) => {
    print('100%', `of "${i}"`, u32(i - 1), x[i]!, f64(x[i]!) / 3, i > 1, '\u00fc?');
    syncthreads();
    print(i);
  });
  const path = await images.built(writtenOf(made, 'off'));
  const args = [Float32Array.of(0.5, -2, 1e20), int(3), int(3), int(NO_LIMIT), int(NO_LIMIT), new Uint32Array(16), new Uint32Array(1)];
  const printed = images.run(path, made.build.entry, { grid: [1, 1, 1], block: [4, 1, 1], threads: 1 }, args);
  expect(printed.split('\n')).toEqual([
    '100% of "0" 4294967295 0.5 0.166667 false \u00fc?',
    '100% of "1" 0 -2 -0.666667 false \u00fc?',
    '100% of "2" 1 1e+20 3.33333e+19 true \u00fc?',
    '0',
    '1',
    '2',
    '',
  ]);
});

test('blocks of three dimensions and of the most threads, with some that leave and values that cross', async () => {
  const made = kernel('turned', { y: inout(i32) }, ({ y }, { shared, local, syncthreads, threadIdx, blockDim, blockIdx }) => {
    const s = shared(i32, 1024);
    const number = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const threads = blockDim.x * blockDim.y * blockDim.z;
    const mine = local(i32, 2);
    let own = number * 3;
    mine[1] = number;
    s[number] = own;
    syncthreads();
    if (number % 5 === 4) return;
    own += s[threads - 1 - number]!;
    syncthreads();
    y[blockIdx.y * threads + number] = own + mine[1]!;
  });
  const path = await images.built(writtenOf(made, 'off'));
  for (const [x, y, z] of [
    [8, 8, 16],
    [1024, 1, 1],
    [1, 1, 1],
    [3, 5, 7],
    [1, 64, 1],
  ] as const) {
    const threads = x * y * z;
    const out = new Int32Array(2 * threads);
    const args = [out, int(out.length), int(NO_LIMIT), int(NO_LIMIT), int(NO_LIMIT), new Uint32Array(16), new Uint32Array(1)];
    images.run(path, made.build.entry, { grid: [1, 2, 1], block: [x, y, z] }, args);
    const one = (n: number): number => (n % 5 === 4 ? 0 : n * 3 + (threads - 1 - n) * 3 + n);
    expect(out).toEqual(Int32Array.from({ length: 2 * threads }, (_, n) => one(n % threads)));
  }
});

test.skipIf(!hasNvcc)('nvcc compiles the same sources (skipped where there is no nvcc)', { timeout: 300_000 }, () => {
  const memory = kernel(
    'memory',
    { y: inout(i32), n: i32 },
    ({ y, n }, { i, shared, sharedDynamic, local, syncthreads, syncwarp, atomicAdd, atomicMax, threadIdx, print, assert }) => {
      const tile = shared(i32, [4, 8]);
      const bytes = sharedDynamic(i32);
      const mine = local(i32, 4);
      mine[i & 3] = i;
      tile[1]![threadIdx.x & 7] = 0;
      assert(n > 0);
      syncthreads();
      atomicAdd(tile[1]!, 2, mine[i & 3]!);
      if (bytes.length > 0) atomicMax(bytes, 0, i);
      syncwarp();
      print('value', y[i]!, n > 1);
      y[i] = tile[1]![2]!;
    },
  );
  checkWithNvcc([inOneSource([memory, ...kernelsFrom(60_001, 'checked')])], ['-w']);
});
