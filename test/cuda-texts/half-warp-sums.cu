#include <cuda_fp16.h>
#include <cuda_bf16.h>

template <typename T>
__device__ T warp_sum(T v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v = __hadd(v, __shfl_down_sync(0xffffffffu, v, offset));
  return v;
}

__global__ void half_warp_sums(const half *x, const half2 *pairs, const __nv_bfloat16 *brain, half *y, half2 *y2,
                               __nv_bfloat16 *y3) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const half sum = warp_sum(x[i]);
  const __nv_bfloat16 brain_sum = warp_sum(brain[i]);
  half2 pair = pairs[i];
  for (int mask = 16; mask > 0; mask >>= 1) pair = pair + __shfl_xor_sync(0xffffffffu, pair, mask);
  if (threadIdx.x % 32 == 0) {
    y[i / 32] = sum;
    y2[i / 32] = pair;
    y3[i / 32] = brain_sum;
  }
}
