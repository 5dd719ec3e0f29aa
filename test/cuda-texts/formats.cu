#define __STDC_FORMAT_MACROS
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

extern "C" __global__ void formats(uint64_t *y, int n) {
  int i = threadIdx.x;
  bool isLast = i == n - 1;
  if (i > n) printf("thread %d has %" PRIu64 "\n", i, y[i]);
  if (i < n) y[i] = isLast ? UINT64_MAX : UINT64_C(1) << i;
}
