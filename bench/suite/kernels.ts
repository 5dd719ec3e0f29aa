// Kernels that several groups launch.
import { cudaKernel, f32, i32, inout, input, output } from 'millrace';

export const empty = cudaKernel('empty', {}, 'extern "C" __global__ void empty() {}');
/** Three arguments, and almost no work. */
export const saxpyOne = cudaKernel(
  'saxpy_one',
  { a: f32, x: input(f32), y: inout(f32) },
  'extern "C" __global__ void saxpy_one(float a, const float* x, float* y) { y[0] = a * x[0] + y[0]; }',
);
/** Busy on one thread for as long as `steps` says. */
export const spin = cudaKernel(
  'spin',
  { x: output(f32), steps: i32 },
  `extern "C" __global__ void spin(float* x, int steps) {
    float value = 0;
    for (int n = 0; n < steps; n++) value = value * 0.5f + 1;
    x[0] = value;
  }`,
);
export const ONE = { grid: 1, block: 1 } as const;
