// Every function of one argument, and conversions, for all 65,536 arguments.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define FUNCTIONS(use)                                                                                            \
  use(htrunc) use(hceil) use(hfloor) use(hrint) use(hsqrt) use(hrsqrt) use(hrcp) use(hlog) use(hlog2) use(hlog10) \
  use(hexp) use(hexp2) use(hexp10) use(hcos) use(hsin) use(htanh) use(__habs) use(__hneg)
#define PAIRS(use)                                                                                           \
  use(h2trunc) use(h2ceil) use(h2floor) use(h2rint) use(h2sqrt) use(h2rsqrt) use(h2rcp) use(h2log) use(h2log2) \
  use(h2log10) use(h2exp) use(h2exp2) use(h2exp10) use(h2cos) use(h2sin) use(h2tanh) use(__habs2) use(__hneg2)

__global__ void half_functions(const half *x, half *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 0;
#define OF_ONE(f) y[n * k++ + i] = f(x[i]);
  FUNCTIONS(OF_ONE)
}

__global__ void half2_functions(const half2 *x, half2 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 0;
#define OF_PAIR(f) y[n * k++ + i] = f(x[i]);
  PAIRS(OF_PAIR)
}

__global__ void bfloat16_functions(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 0;
  FUNCTIONS(OF_ONE)
}

__global__ void bfloat162_functions(const __nv_bfloat162 *x, __nv_bfloat162 *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 0;
  PAIRS(OF_PAIR)
}
