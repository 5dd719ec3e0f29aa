#include <cuda_fp16.h>

__global__ void half2_saxpy(int n, half a, const half *x, half *y) {
  const half2 *x2 = reinterpret_cast<const half2 *>(x);
  half2 *y2 = reinterpret_cast<half2 *>(y);
  const half2 a2 = __half2half2(a);
  int start = threadIdx.x + blockDim.x * blockIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = start; i < n / 2; i += stride) y2[i] = __hfma2(a2, x2[i], y2[i]);
  // The first thread also does the last element of an odd length.
  if (start == 0 && (n % 2)) y[n - 1] = __hfma(a, x[n - 1], y[n - 1]);
}
