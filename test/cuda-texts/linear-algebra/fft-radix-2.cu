// A discrete Fourier transform of a block in shared memory.
#include <math_constants.h>
#include <cuComplex.h>

__device__ unsigned reversed(unsigned i, int bits) { return __brev(i) >> (32 - bits); }

extern "C" __global__ void fft(cuFloatComplex *data, int log_n) {
  extern __shared__ cuFloatComplex s[];
  const int n = 1 << log_n, t = threadIdx.x;
  s[reversed(t, log_n)] = data[blockIdx.x * n + t];
  s[reversed(t + n / 2, log_n)] = data[blockIdx.x * n + t + n / 2];
  __syncthreads();
  for (int half = 1; half < n; half *= 2) {
    const int k = t % half, at = t / half * 2 * half + k;
    const float angle = -CUDART_PI_F * k / half;
    const cuFloatComplex w = make_cuFloatComplex(cosf(angle), sinf(angle));
    const cuFloatComplex a = s[at], b = cuCmulf(w, s[at + half]);
    __syncthreads();
    s[at] = cuCaddf(a, b);
    s[at + half] = cuCsubf(a, b);
    __syncthreads();
  }
  data[blockIdx.x * n + t] = s[t];
  data[blockIdx.x * n + t + n / 2] = s[t + n / 2];
}
