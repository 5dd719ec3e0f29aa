#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#define N 1000
#define CHECK(call)                                                     \
  do {                                                                  \
    cudaError_t error = (call);                                         \
    if (error != cudaSuccess) {                                         \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                               \
    }                                                                   \
  } while (0)

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main(int argc, char **argv) {
  size_t bytes = N * sizeof(float);
  float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
  for (int i = 0; i < N; ++i) {
    a[i] = rand() / (float)RAND_MAX;
    b[i] = i;
  }
  float *da, *db, *dc;
  CHECK(cudaMalloc(&da, bytes));
  CHECK(cudaMalloc(&db, bytes));
  CHECK(cudaMalloc(&dc, bytes));
  CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
  add<<<(N + 255) / 256, 256>>>(da, db, dc, N);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
  printf("%f\n", c[N - 1]);
  free(a);
  return 0;
}
