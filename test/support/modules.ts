// Modules that tests share.
import { type CudaModule, cudaModule, i32, inout, type InOut, type Kernel } from 'millrace';

/** Two kernels that change what they share. */
export const COUNTERS = `
__device__ int count = 100;
static __device__ int steps[3] = {1, 2, 3};
extern "C" __global__ void add(int* out, int by) {
  count += by;
  out[0] = count;
}
extern "C" __global__ void step(int* out) {
  steps[1] += 10;
  count += steps[1];
  out[0] = count;
}
`;
/** Variables of all kinds. */
export const WEIGHTS = `
struct Pair { float scale; int shift; };
namespace physics {
namespace inner { __device__ float gravity = 9.5f; }
}
__constant__ float weights[4];
__device__ Pair pairs[2] = {{2.0f, 3}, {4.0f, 5}};
__device__ float* where;
__device__ const int fixed[2] = {7, 8};
extern "C" __global__ void weigh(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * weights[i % 4] + physics::inner::gravity;
}
extern "C" __global__ void follow(int* out) {
  out[0] = where == nullptr ? -1 : (int)where[1];
  out[1] = (int)pairs[1].scale * 100 + pairs[1].shift + fixed[1];
}
`;

/** Variables that host code of a program would use, too. */
export const MANAGED = `
#include <cstdio>
#define MANAGED __managed__
__managed__ int found = 7;
MANAGED __device__ float values[8];
__global__ void gather(float* y) {
  const int i = threadIdx.x;
  y[i] = values[i];
  values[i] = -values[i];
  atomicAdd(&found, 1);
}
int main() {
  gather<<<1, 8>>>(nullptr);
  cudaDeviceSynchronize();
  printf("%d\\n", found);
}
`;

export interface Counters {
  readonly module: CudaModule;
  readonly add: Kernel<{ out: InOut<'i32'>; by: typeof i32 }>;
  readonly step: Kernel<{ out: InOut<'i32'> }>;
}

export function counters(): Counters {
  const module = cudaModule(COUNTERS);
  return { module, add: module.kernel('add', { out: inout(i32), by: i32 }), step: module.kernel('step', { out: inout(i32) }) };
}

/** One thread. */
export const one = { grid: 1, block: 1 } as const;
