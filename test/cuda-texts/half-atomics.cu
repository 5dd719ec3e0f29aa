#include <cuda_fp16.h>
#include <cuda_bf16.h>

__global__ void half_atomics(const half *x, half *sums, half2 *pairs, __nv_bfloat16 *brain, __nv_bfloat162 *brains, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&sums[i % 4], x[i]);
  atomicAdd(pairs + i % 2, __halves2half2(x[i], __hneg(x[i])));
  const __nv_bfloat16 b = __float2bfloat16(__half2float(x[i]));
  atomicAdd(&brain[i % 4], b);
  atomicAdd(&brains[i % 2], __nv_bfloat162(b, b));
}
