// Sums in one launch: the last block to finish adds the sums of all blocks.
#include <cstdio>
#include <cuda_runtime.h>

#define THREADS 128

__device__ unsigned int blocks_done = 0;

__device__ float block_sum(float value) {
  __shared__ float values[THREADS];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) values[threadIdx.x] += values[threadIdx.x + s];
    __syncthreads();
  }
  return values[0];
}

__global__ void sum(const float *x, float *partial, float *total, int n) {
  __shared__ bool is_last;
  float value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += x[i];
  value = block_sum(value);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = value;
    __threadfence();
    is_last = atomicInc(&blocks_done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    float all = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) all += ((volatile float *)partial)[i];
    __syncthreads();
    all = block_sum(all);
    if (threadIdx.x == 0) {
      *total = all;
      blocks_done = 0;
    }
  }
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  float *x, *partial, *total;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&partial, 64 * sizeof(float));
  cudaMalloc(&total, sizeof(float));
  sum<<<64, THREADS>>>(x, partial, total, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
