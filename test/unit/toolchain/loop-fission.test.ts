// Kernels after loop fission compared bit for bit with threads that have stacks, and kernels that loop fission rejects.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { formsOf } from '../../../src/cuda-cpp/lower/kernel-forms.js';
import { kernelNames } from '../../../src/cuda-cpp/lower/rewrite.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { IS_LONG } from '../../support/long.js';
import { i32, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const SOURCE = readFileSync(fileURLToPath(new URL('./parts.cu', import.meta.url)), 'utf8');
const NAMES = ['tree', 'crossing', 'nested', 'shadows', 'inside', 'memory', 'turning', 'counting', 'tiles'];
const SHAPES: readonly (readonly [number, number, number])[] = [
  [1, 1, 1],
  [33, 1, 1],
  [5, 7, 1],
  [4, 3, 9],
  [1, 1, 64],
  ...(IS_LONG ? ([[1024, 1, 1]] as const) : []),
  [32, 32, 1],
];

const images = imagesOfFile();
/** In both forms. */
let built: readonly string[];
beforeAll(async () => {
  built = await Promise.all((['fission', 'stacks'] as const).map((form) => images.built(specOf(SOURCE, 'tree'), NAMES, form)));
}, 60_000);

/** Kernels of the source that loop fission splits. */
function cutOf(source: string): readonly string[] {
  const { tokens } = tokenize(source);
  return formsOf(source, tokens, true).split;
}

test('all kernels of parts.cu are split by loop fission', () => {
  expect(kernelNames(SOURCE)).toEqual(NAMES);
  // Without the macros, which the preprocessor expands before.
  const text = SOURCE.replaceAll('RANK', 'threadIdx.x').replaceAll('BLOCK', 'blockIdx.x').replaceAll('COUNT', 'blockDim.x');
  expect(cutOf(text)).toEqual(NAMES);
});

test.each(NAMES)(
  '%s gives the same in both forms',
  (name) => {
    const launches = SHAPES.flatMap((block) => {
      const count = block[0] * block[1] * block[2];
      return [...new Set([0, 1, 3, count - 1, count + 1, 4 * count])].map((n) => {
        const results = built.map(() => new Float32Array(4 * count).fill(-7));
        return { block, count, n, x: Float32Array.from({ length: 4 * count }, (_, i) => ((i * 7919) % 101) - 50), results };
      });
    });
    images.runAll(
      launches.flatMap(({ block, count, n, x, results }) =>
        built.map((image, form) => [image, name, { grid: [2, 1, 2], block, sharedBytes: 8 * count }, [x, results[form]!, i32(n)]] as const),
      ),
    );
    for (const { block, count, n, results } of launches) {
      expect(results[0], `${n} in blocks of ${block.join(' x ')}`).toEqual(results[1]);
      // It did what it was there for: every element below n, and none beyond.
      expect([...results[0]!].slice(n).every((value) => value === -7)).toBe(true);
      if (n === 4 * count && count > 1) expect(new Set(results[0]).size).toBeGreaterThan(1);
    }
  },
  60_000,
);

test.each([
  ['a return before a barrier', 'if (n > 3) return; __syncthreads();'],
  ['a return behind one', '__syncthreads(); if (n > 3) return; y[0] = 1;'],
  ['a loop that threads might leave at different times', 'for (int i = threadIdx.x; i < n; i += 32) __syncthreads();'],
  ['a loop decided by memory', 'for (int i = 0; i < y[0]; i++) __syncthreads();'],
  ['a loop decided through a pointer', 'for (int i = 0; i < *y; i++) __syncthreads();'],
  ['a loop whose counter the body changes', 'for (int i = 0; i < n; i++) { __syncthreads(); i += y[0]; }'],
  ['a counter that another function may change', 'for (int i = 0; i < n; i++) { __syncthreads(); change(i); }'],
  ['a counter whose address is taken', 'for (int i = 0; i < n; i++) { int* p = &i; __syncthreads(); *p = 3; }'],
  ['a loop with a counter of its own outside', 'int i; for (i = 0; i < n; i++) __syncthreads();'],
  ['a parameter that changes', 'n -= threadIdx.x; for (int i = 0; i < n; i++) __syncthreads();'],
  ['a bound that changes', 'int m = 3; for (int i = 0; i < m; i++) { __syncthreads(); m = y[i]; }'],
  ['a branch decided by a thread', 'const int t = threadIdx.x; if (t < 3) __syncthreads();'],
  ['a branch decided by a function', 'if (f(n)) __syncthreads();'],
  ['a branch decided by a name from elsewhere', 'if (mode) __syncthreads();'],
  ['while', 'while (n > 0) __syncthreads();'],
  ['do', 'do { __syncthreads(); } while (n > 3);'],
  ['break out of a loop around a barrier', 'for (int i = 0; i < n; i++) { if (y[i]) break; __syncthreads(); }'],
  ['continue in one', 'for (int i = 0; i < n; i++) { __syncthreads(); if (y[i]) continue; y[i] = 1; }'],
  ['a barrier in an expression', 'y[0] = 1, __syncthreads();'],
  ['another kind of wait', '__syncthreads(); y[0] = __shfl_sync(~0u, n, 3);'],
  ['a barrier that asks', 'y[0] = __syncthreads_or(n);'],
  ['a lambda', 'auto f = [&] { return n; }; __syncthreads(); y[0] = f();'],
  ['a local class', 'struct S { int a; }; S s; __syncthreads(); y[0] = s.a;'],
  ['auto that outlives a barrier', 'auto v = y[threadIdx.x]; __syncthreads(); y[0] = v;'],
  ['a reference that does', 'int& v = y[threadIdx.x]; __syncthreads(); v = 3;'],
  ['an array with first values that does', 'int v[2] = {1, y[0]}; __syncthreads(); y[0] = v[1];'],
  [
    'a name declared twice, inside and outside',
    'int v = y[0]; for (int i = 0; i < n; i++) { __syncthreads(); int v = y[i]; __syncthreads(); y[i] = v; } y[0] = v;',
  ],
  ['a declaration that calls a constructor', 'int v(3); __syncthreads(); y[0] = v;'],
  ['goto', 'again: __syncthreads(); if (y[0]) goto again;'],
  ['static', 'static int v = 3; __syncthreads(); y[0] = v;'],
  ['assembly', 'asm(""); __syncthreads();'],
])('%s is left to stacks', (_what, body) => {
  expect(cutOf(`extern "C" __global__ void k(int* y, int n) { ${body} }`)).toEqual([]);
  // But for what is wrong with it, it would be cut.
  expect(cutOf('extern "C" __global__ void k(int* y, int n) { y[0] = n; __syncthreads(); }')).toEqual(['k']);
});

test('templates, separate declarations and functions that wait are not split', () => {
  expect(cutOf('template <int N> __global__ void k(int* y) { __syncthreads(); }')).toEqual([]);
  expect(cutOf('extern "C" __global__ void k(int* y); extern "C" __global__ void k(int* y) { __syncthreads(); }')).toEqual([]);
  expect(
    cutOf(
      '__device__ void f() { __syncthreads(); } extern "C" __global__ void k(int* y) { f(); } extern "C" __global__ void l() { __syncthreads(); }',
    ),
  ).toEqual(['l']);
});

test('loops over the rows of a tile are unrolled only in parts that use it, and only if their number is known', () => {
  const body = `const int t = threadIdx.y * 16 + threadIdx.x; float sum = y[t]; __syncthreads(); part[t & 7]PLACE = sum; __syncthreads(); y[t] = sum;`;
  const edited = (shared: string, place: string): string => {
    const source = `extern "C" __global__ void k(float* y) { __shared__ float ${shared}; ${body.replace('PLACE', place)} }`;
    const { tokens } = tokenize(source);
    return formsOf(source, tokens, true)
      .edits.map(({ text }) => text)
      .join('');
  };
  const loops = /(?:#pragma GCC unroll 1\n)?for \(int mr_y/g;
  const [left, once] = ['for (int mr_y', '#pragma GCC unroll 1\nfor (int mr_y'];
  expect(edited('part[16][16]', '[0]').match(loops)).toEqual([once, left, once]);
  expect(edited('part[256]', '').match(loops)).toEqual([left, left, left]);
});

test('copying a row to shared memory emits no memcpy call', async () => {
  const compiler = await CpuCompiler.open();
  const source = `extern "C" __global__ void k(const float* x, float* y) {
    __shared__ float part[256];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = part[255 - threadIdx.x];
  }`;
  expect(Buffer.from(await compiler.compile(specOf(source, 'k'), ['k'], 'fission')).includes('memcpy')).toBe(false);
});

test('source that does not compile after loop fission is built with stacks', async () => {
  // What a thread keeps is too large to keep for all.
  const source = `extern "C" __global__ void k(int* y) {
    int own[1000];
    for (int i = 0; i < 1000; i++) own[i] = i * threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = own[999];
  }`;
  expect(cutOf(source)).toEqual(['k']);
  await expect(images.built(specOf(source, 'k'), ['k'], 'fission')).rejects.toThrow('at most 1024 bytes');
  const image = await images.built(specOf(source, 'k'));
  const y = new Int32Array(100);
  images.run(image, 'k', { grid: [1, 1, 1], block: [100, 1, 1] }, [y]);
  expect([...y]).toEqual(Array.from({ length: 100 }, (_, t) => 999 * t));
});
