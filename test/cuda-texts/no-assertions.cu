#define NDEBUG
#include <assert.h>

extern "C" __global__ void no_assertions(int *y, int n) {
  int i = threadIdx.x;
  assert(i > 1000 && "removed");
  if (i < n) y[i] = i;
}
