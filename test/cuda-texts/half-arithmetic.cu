// Arithmetic and comparisons on triples of random bits, by functions and by operators.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ unsigned verdicts(T a, T b) {
  const bool all[] = {__heq(a, b),  __hne(a, b),  __hlt(a, b),  __hle(a, b),  __hgt(a, b),  __hge(a, b), __hequ(a, b),
                      __hneu(a, b), __hltu(a, b), __hleu(a, b), __hgtu(a, b), __hgeu(a, b), a == b,      a != b,
                      a < b,        a <= b,       a > b,        a >= b,       __hisnan(a),  (bool)a};
  unsigned bits = 0;
  for (int i = 0; i < 20; i++) bits |= all[i] ? 1u << i : 0u;
  return bits | (unsigned)(__hisinf(a) + 1) << 20;
}

// A compiler that knows that two expressions have the same product fuses neither, so each loads its operands.
template <typename T>
__device__ T loaded(const T *x) {
  T v;
  reinterpret_cast<unsigned short &>(v) = *reinterpret_cast<const volatile unsigned short *>(x);
  return v;
}

template <typename T>
__device__ void compute(const T *x, T *y, int n) {
  int k = 0;
#define PUT(e)                                                                               \
  {                                                                                          \
    const T a = loaded(x), b = loaded(x + 1), c = loaded(x + 2), d = loaded(x + 3);          \
    y[n * k++] = e;                                                                          \
    (void)a, (void)b, (void)c, (void)d;                                                      \
  }
  PUT(__hadd(a, b)) PUT(__hsub(a, b)) PUT(__hmul(a, b)) PUT(__hdiv(a, b))
  PUT(__hadd_rn(__hmul_rn(a, b), c)) PUT(__hsub_rn(__hmul_rn(a, b), c))
  PUT(__hadd_sat(a, b)) PUT(__hsub_sat(a, b)) PUT(__hmul_sat(a, b))
  PUT(__hfma(a, b, c)) PUT(__hfma_sat(a, b, c)) PUT(__hfma_relu(a, b, c))
  PUT(__hmax(a, b)) PUT(__hmin(a, b)) PUT(__hmax_nan(a, b)) PUT(__hmin_nan(a, b))
  PUT(a + b) PUT(a - b) PUT(a * b) PUT(a / b) PUT(-a)
  PUT(a * b + c) PUT(c + a * b) PUT(a * b - c) PUT(c - a * b) PUT(a * b + c * d) PUT(__hadd(__hmul(a, b), c))
  PUT(-(a * b) + c)
  T sum = loaded(x + 2);
  sum += loaded(x) * loaded(x + 1);
  y[n * k++] = sum;
  sum = loaded(x + 2);
  sum -= loaded(x);
  sum *= loaded(x + 1);
  // Not fused, as the product is a variable on the CPU device.
  sum = __hadd_rn(sum, T(1.0f));
  y[n * k++] = sum--;
  sum++;
  y[n * k++] = sum;
}

__global__ void half_arithmetic(const half *x, half *y, unsigned *said, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  compute<half>(x + i, y + i, n);
  said[i] = verdicts<half>(x[i], x[i + 1]);
}

__global__ void bfloat16_arithmetic(const __nv_bfloat16 *x, __nv_bfloat16 *y, unsigned *said, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  compute<__nv_bfloat16>(x + i, y + i, n);
  said[i] = verdicts<__nv_bfloat16>(x[i], x[i + 1]);
}
