// Statements on volatile arrays that the lanes of a warp take together on the CPU device.
import { expect, test } from 'vitest';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { lockstepEdits } from '../../../src/cuda-cpp/lower/lockstep.js';
import { specOf } from './run-image.js';
import { useQuickCompiler } from '../../support/use-quick-compiler.js';
import { imagesOfFile } from './images.js';

useQuickCompiler();

const images = imagesOfFile();

async function results(source: string): Promise<number[]> {
  const image = await images.built(specOf(source, 'k'), ['k']);
  const y = new Int32Array(64);
  images.run(image, 'k', { grid: [1, 1, 1], block: [64, 1, 1] }, [y]);
  return [...y];
}
const kernel = (body: string): string => `extern "C" __global__ void k(int* y) { const int t = threadIdx.x; ${body} }`;
const steps = (of: (offset: number) => string): string => [32, 16, 8, 4, 2, 1].map(of).join(' ');
const SUM = (63 * 64) / 2;

test.each([
  ['in a function', steps((d) => `s[t] += s[t + ${d}];`)],
  ['through a variable', `int sum = t; ${steps((d) => `s[t] = sum = sum + s[t + ${d}];`)}`],
  ['under conditions', steps((d) => `if (t < ${d}) s[t] = s[t] + s[t + ${d}]; else t += 0;`)],
  ['in a loop', 'for (int d = 32; d > 0; d /= 2) s[t] += s[t + d];'],
])('a sum of the last warp: %s', async (_where, body) => {
  const source = `__device__ void last(volatile int* s, int t) { ${body} }
    ${kernel('__shared__ int s[96]; s[t] = t; s[t % 32 + 64] = 0; __syncthreads(); if (t < 32) last(s, t); __syncthreads(); y[t] = s[0];')}`;
  expect(await results(source)).toEqual(Array.from({ length: 64 }, () => SUM));
});

test('a scan of each warp by a macro, in a kernel without barriers', async () => {
  const source = `#define STEP(d) s[at] += s[at - d]
    ${kernel('__shared__ volatile int s[160]; int at = 2 * t - t % 32; s[at] = 0; at += 32; s[at] = 1; STEP(1); STEP(2); STEP(4); STEP(8); STEP(16); y[t] = s[at];')}`;
  expect(await results(source)).toEqual(Array.from({ length: 64 }, (_unused, t) => (t % 32) + 1));
});

test.each([
  ['no volatile array', '__shared__ int s[64]; s[t] += s[t ^ 1];', 0],
  ['an element of a volatile array', '__shared__ volatile int s[64]; s[t] += s[t ^ 1];', 2],
  ['a barrier follows', '__shared__ volatile int s[64]; if (t < 32) { s[t] += s[t + 32]; } __syncthreads();', 0],
  ['no element is read', '__shared__ volatile int s[64]; s[t] = t; s[0] *= 2;', 0],
  ['no statement of its own', '__shared__ volatile int s[64]; y[0] = (s[t] += s[t + 1]); s[t] = 1, s[t] += s[1];', 0],
  ['a lock', '__shared__ volatile int s[64]; s[t] += s[t ^ 1]; atomicExch(y, 0);', 0],
])('which statements are changed: %s', (_why, body, count) => {
  expect(lockstepEdits(tokenize(kernel(body)).tokens)).toHaveLength(count);
});
