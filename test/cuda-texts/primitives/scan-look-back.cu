// Inclusive scan of any length in one launch: each block waits for the sum of the block before it.
#include <cuda_runtime.h>

enum Status : int { kEmpty = 0, kReady = 1 };

__device__ __forceinline__ int warp_scan(int value) {
  for (int reach = 1; reach < 32; reach *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, reach);
    if ((threadIdx.x & 31) >= reach) value += other;
  }
  return value;
}

__global__ void scan(const int *in, int *out, int n, volatile int *prefix, int *status, int *ticket) {
  __shared__ int block, before, warps[32];
  if (threadIdx.x == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  const int i = block * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = warp_scan(i < n ? in[i] : 0);
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) warps[lane] = warp_scan(lane < blockDim.x / 32 ? warps[lane] : 0);
  __syncthreads();
  if (warp > 0) sum += warps[warp - 1];
  if (threadIdx.x == blockDim.x - 1) {
    before = 0;
    if (block > 0) {
      while (atomicAdd(&status[block - 1], 0) == kEmpty)
        ;
      before = prefix[block - 1];
    }
    prefix[block] = before + sum;
    __threadfence();
    atomicExch(&status[block], kReady);
  }
  __syncthreads();
  if (i < n) out[i] = before + sum;
}
