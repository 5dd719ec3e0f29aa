// Assertions of CUDA C++ source on the CPU device, in images: which threads stop or continue, and the fault slot.
import { expect, test } from 'vitest';
import { ASSERTION_PARAMETER } from '../../../src/core/channel/build-spec.js';
import { specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const images = imagesOfFile();

const HELPER = `__device__ int inner(int v) { assert(v % 3 != 1); return v; }
__device__ int outer(int v) { int kept[4] = {v, v, v, v}; return inner(kept[v & 3]); }
`;
const FORMS = {
  loops: `${HELPER}extern "C" __global__ void k(int* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 1;
  x[i] = outer(i) + 100;
}`,
  stacks: `${HELPER}__device__ int waiting(int v) { __syncwarp(); const int got = outer(v); __syncthreads(); return got; }
extern "C" __global__ void k(int* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 1;
  const int got = waiting(i);
  x[i] = got + (__syncthreads_count(1) == (int)(blockDim.x - (blockDim.x + 2 - blockIdx.x * blockDim.x % 3) / 3) ? 100 : 0);
}`,
  barriers: `${HELPER}extern "C" __global__ void k(int* x) {
  __shared__ int s[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 1;
  s[threadIdx.x] = outer(i);
  __syncthreads();
  x[i] = s[threadIdx.x] + 100;
}`,
};

test.each(Object.entries(FORMS))('%s: threads that fail stop there, the others go on, block after block', async (_name, source) => {
  const path = await images.built(specOf(source, 'k', { isAsserting: true }));
  const [blocks, block] = [4, 30];
  const x = new Int32Array(blocks * block);
  const [slot, word] = [new Uint32Array(16), new Uint32Array(1)];
  images.run(path, 'k', { grid: [blocks, 1, 1], block: [block, 1, 1], threads: 1 }, [x, slot, word]);
  expect([...x]).toEqual(Array.from(x, (_, i) => (i % 3 === 1 ? 1 : i + 100)));
  expect(word[0]).toBe(1);
  // Written, an assertion, on line 1, by the first thread that failed.
  expect([...slot.subarray(0, 2)]).toEqual([2, ASSERTION_PARAMETER]);
  expect([...slot.subarray(4, 12)]).toEqual([1, 0, 0, 0, 0, 1, 0, 0]);
});
