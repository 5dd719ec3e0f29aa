// Floats that become integers and convert back: a zero that was an integer has no sign, in every compiled form.
import { expect, test } from 'vitest';
import { imagesOfFile } from './images.js';
import { i32, specOf } from './run-image.js';
import { IS_LONG } from '../../support/long.js';

const images = imagesOfFile();

/** For vectors of any width, with a remainder for each. */
const COUNT = 64 + 32 + 16 + 15;
const NUMBERS = Float32Array.from({ length: COUNT }, (_unused, i) =>
  i % 2 === 0 ? -0.9 + i / COUNT / 2 : [-0, 0.5, -1.5, 7.25][(i >> 1) % 4]!,
);

const EXPRESSIONS: Readonly<Record<string, readonly [text: string, of: (x: number) => number]>> = {
  casts: ['(float)(int)x[i]', Math.trunc],
  named_casts: ['static_cast<float>(static_cast<long long>(x[i]))', Math.trunc],
  variables: ['whole(x[i])', Math.trunc],
  rounded_down: ['(float)(int)floorf(x[i])', Math.floor],
  rounded_up: ['(float)(int)ceilf(x[i])', Math.ceil],
  rounded: ['(float)(int)rintf(x[i] * 0.25f)', (x) => Math.round(x * 0.25)],
  rounded_wide: ['(float)(long long)floorf(x[i])', Math.floor],
  intrinsics: ['(float)__float2int_rz(x[i])', Math.trunc],
  wide_intrinsics: ['(float)__float2ll_rz(x[i])', Math.trunc],
  unsigned_intrinsics: ['(float)__float2uint_rz(x[i])', (x) => Math.max(0, Math.trunc(x))],
  doubles: ['(float)(double)(long long)(double)x[i]', Math.trunc],
  double_intrinsics: ['(float)(double)__double2int_rd((double)x[i])', Math.floor],
};

const sourceOf = (name: string, text: string): string => `__device__ float whole(float x) { int i = x; float y = i; return y; }
extern "C" __global__ void ${name}(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ${text};
}
extern "C" __global__ void ${name}_behind_a_barrier(const float* x, float* y, int n) {
  __shared__ float s[${COUNT}];
  const int i = threadIdx.x;
  s[i] = ${text};
  __syncthreads();
  if (i < n) y[i] = s[i];
}`;

/** One source per form, because g++ may optimise one depending on another. */
test.each(Object.entries(EXPRESSIONS).filter((_, at) => IS_LONG || at % 3 === 0))('%s', async (name, [text, of]) => {
  const expected = Float32Array.from(NUMBERS, (x) => of(x) + 0);
  const entries = [name, `${name}_behind_a_barrier`];
  const image = await images.built(specOf(sourceOf(name, text), name), entries);
  for (const entry of entries) {
    const y = new Float32Array(COUNT).fill(-7);
    images.run(image, entry, { grid: [1, 1, 1], block: [COUNT, 1, 1] }, [NUMBERS, y, i32(COUNT)]);
    expect(y).toEqual(expected);
  }
});
