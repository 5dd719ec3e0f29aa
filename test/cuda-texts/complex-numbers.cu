#include <cuComplex.h>

__device__ int escape(cuFloatComplex c, int most) {
  cuFloatComplex z = make_cuFloatComplex(0.0f, 0.0f);
  int n = 0;
  while (n < most && cuCabsf(z) <= 2.0f) {
    z = cuCaddf(cuCmulf(z, z), c);
    n++;
  }
  return n;
}

extern "C" __global__ void complex_numbers(int *counts, cuDoubleComplex *quotients, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  counts[i] = escape(make_cuFloatComplex(i * 0.25f - 2.0f, 0.5f), 50);
  cuDoubleComplex a = make_cuDoubleComplex(i, 1.0), b = make_cuDoubleComplex(2.0, -1.0);
  quotients[i] = cuCsub(cuCdiv(a, b), cuConj(make_cuDoubleComplex(cuCreal(a), cuCimag(b))));
}
