// The sum of squares of gradients, by a reduction whose last warp needs no barriers: it reads and writes a volatile array in step.
#include <cuda_runtime.h>
#include <assert.h>
#include <stdio.h>

#ifdef __CUDACC__
#define MIN(x, y) ((x < y) ? x : y)
#define MAX(x, y) ((x > y) ? x : y)
#endif
#define WARP_STEP(offset) smem[tid] = mySum = mySum + smem[tid + (offset)]

// Utility class used to avoid linker errors with extern unsized shared memory arrays with templated type
template <class T>
struct SharedMemory {
  __device__ inline operator T *() {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
};
template <>
struct SharedMemory<double> {
  __device__ inline operator double *() {
    extern __shared__ double __smem_d[];
    return (double *)__smem_d;
  }
};

/*
    This version adds multiple elements per thread sequentially.  This reduces the overall cost of the algorithm while
    keeping the work complexity O(n) and the step complexity O(log n).
    Note, this kernel needs a minimum of 64*sizeof(T) bytes of shared memory.
*/
template <class T, unsigned int blockSize, bool nIsPow2>
__global__ void sumOfSquares(const T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
  unsigned int gridSize = blockSize * 2 * gridDim.x;
  T mySum = 0;
  while (i < n) {
    mySum += g_idata[i] * g_idata[i];
    // ensure we don't read out of bounds -- this is optimized away for powerOf2 sized arrays
    if (nIsPow2 || i + blockSize < n) mySum += g_idata[i + blockSize] * g_idata[i + blockSize];
    i += gridSize;
  }
  sdata[tid] = mySum;
  __syncthreads();
  // do reduction in shared mem
  if (blockSize >= 512) { if (tid < 256) { sdata[tid] = mySum = mySum + sdata[tid + 256]; } __syncthreads(); }
  if (blockSize >= 256) { if (tid < 128) { sdata[tid] = mySum = mySum + sdata[tid + 128]; } __syncthreads(); }
  if (blockSize >= 128) { if (tid < 64) { sdata[tid] = mySum = mySum + sdata[tid + 64]; } __syncthreads(); }
  if (tid < 32) {
    // now that we are using warp-synchronous programming we need to declare our shared memory volatile
    volatile T *smem = sdata;
    if (blockSize >= 64) { WARP_STEP(32); }
    if (blockSize >= 32) { WARP_STEP(16); }
    if (blockSize >= 16) WARP_STEP(8);
    if (blockSize >= 8) WARP_STEP(4);
    if (blockSize >= 4) WARP_STEP(2);
    if (blockSize >= 2) WARP_STEP(1);
  }
  // write result for this block to global mem
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

bool isPow2(unsigned int x) { return ((x & (x - 1)) == 0); }

template <class T>
void reduce(int size, int threads, int blocks, const T *d_idata, T *d_odata) {
  int smemSize = (threads <= 32) ? 2 * threads * sizeof(T) : threads * sizeof(T);
  if (isPow2(size)) {
    switch (threads) {
      case 256: sumOfSquares<T, 256, true><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
      case 64: sumOfSquares<T, 64, true><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
    }
  } else {
    switch (threads) {
      case 256: sumOfSquares<T, 256, false><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
      case 64: sumOfSquares<T, 64, false><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
    }
  }
}
template void reduce<float>(int, int, int, const float *, float *);
template void reduce<double>(int, int, int, const double *, double *);
