#include <stdio.h>
__global__ void fill(int *y, int n);

int main(void) {
#define WIDTH 7
#if 0
  this is not C++ {{{
#endif
  int *y;
  cudaMalloc(&y, WIDTH * sizeof(int));
  fill<<<1, WIDTH>>>(y, WIDTH);
  char brace = '{';
  printf("done } %c\n", brace);
}

__global__ void fill(int *y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = i % WIDTH;
}
