// Kernels launch kernels here, as the host does.
#include <cstdio>

__global__ void child(int *y, int from, int n) {
  int i = threadIdx.x;
  if (i < n) y[from + i] = from + i;
}

__global__ void parent(int *y, int n) {
  if (threadIdx.x == 0) {
    for (int from = 0; from < n; from += 32) child<<<1, 32>>>(y, from, n - from < 32 ? n - from : 32);
  }
}

int main() {
  int *y;
  cudaMalloc(&y, 100 * sizeof(int));
  parent<<<1, 1>>>(y, 100);
  cudaDeviceSynchronize();
  cudaFree(y);
}
