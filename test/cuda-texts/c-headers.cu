#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" __global__ void c_headers(const float *x, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint8_t small = (uint8_t)i;
  size_t bytes = sizeof(small) + sizeof(ptrdiff_t);
  assert(bytes == 9);
  float clipped = fminf(fmaxf(x[i], -FLT_MAX), FLT_MAX);
  out[i] = clipped > FLT_EPSILON ? M_PI * clipped : (double)(INT_MAX - i) + SCHAR_MIN;
}
