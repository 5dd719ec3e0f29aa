// What sources write besides arithmetic: bits, constants, raw structs, unions, vector loads, directives.
#include <cuda_fp16.h>
#if defined(__CUDA_FP16_TYPES_EXIST__) && !defined(NO_HALVES)
typedef __half scalar_t;
#else
typedef __nv_bfloat16 scalar_t;
#endif

union Eight {
  uint4 words;
  half2 pairs[4];
  half each[8];
};
struct Settings {
  half low, high;
};
__constant__ unsigned short table[3] = {0x3c00, 0x4000, 0x4200};

template <typename T>
__device__ T clipped(T v, T low, T high) {
  return v < low ? low : v > high ? high : v;
}

__global__ void half_idioms(const scalar_t *__restrict__ x, half *y, unsigned short *bits, int n) {
  __shared__ half line[64];
  const int i = threadIdx.x;
  if (i < n) line[i] = x[i];
  __syncthreads();
  const Settings to = {__float2half(-2.0f), half(3)};
  if (i < n) {
    half v = clipped(line[n - 1 - i], to.low, to.high);
    if (v == __float2half(0.0f)) v = __float2half(1.0f);
    v = v * half(2.0f) - __ushort_as_half(table[i % 3]);
    y[i] = v;
    __half_raw raw = v;
    bits[i] = raw.x ^ __half_as_ushort(__short_as_half(1));
  }
  if (i < n / 8) {
    Eight eight;
    eight.words = reinterpret_cast<const uint4 *>(x)[i];
    for (int k = 0; k < 4; k++) eight.pairs[k] = __lowhigh2highlow(eight.pairs[k]);
    for (int k = 0; k < 8; k++) y[n + 8 * i + k] = eight.each[k];
    const half2 first = eight.pairs[0];
    bits[n + i] = static_cast<unsigned short>(__hgt2_mask(first, make_half2(0, 0)) >> 8);
  }
}
