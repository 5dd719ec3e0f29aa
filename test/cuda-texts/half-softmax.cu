#include <cuda_fp16.h>

__inline__ __device__ half warp_max(half v) {
  for (int mask = 16; mask > 0; mask >>= 1) v = __hmax(v, __shfl_xor_sync(0xffffffff, v, mask));
  return v;
}

__inline__ __device__ float warp_sum(float v) {
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xffffffff, v, mask, 32);
  return v;
}

// A row for each warp, 32 columns.
__global__ void half_softmax(const half *x, half *y, int rows) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const half v = __ldg(&x[row * 32 + lane]);
  const half e = hexp(__hsub(v, warp_max(v)));
  const float sum = warp_sum(__half2float(e));
  y[row * 32 + lane] = __float2half_rn(__half2float(e) / sum);
}
