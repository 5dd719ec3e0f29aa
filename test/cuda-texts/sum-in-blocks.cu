#include <cuda_runtime.h>
#include <stdio.h>
#define BLOCK 128

typedef float real_t;
typedef struct { real_t sum, most; } Stats;

static __device__ __forceinline__ real_t larger(real_t a, real_t b) { return a > b ? a : b; }

extern "C" __global__ __launch_bounds__(BLOCK) void sum_in_blocks(const real_t *__restrict__ x, Stats *stats, int n) {
  __shared__ real_t sums[BLOCK], mosts[BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * BLOCK + t;
  sums[t] = i < n ? x[i] : 0;
  mosts[t] = i < n ? x[i] : -INFINITY;
  __syncthreads();
  for (unsigned s = BLOCK / 2; s > 0; s >>= 1) {
    if (t < s) {
      sums[t] += sums[t + s];
      mosts[t] = larger(mosts[t], mosts[t + s]);
    }
    __syncthreads();
  }
  if (t == 0) stats[blockIdx.x] = Stats{sums[0], mosts[0]};
}
