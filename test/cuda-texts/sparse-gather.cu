// A sparse matrix times a vector. The vector is read through a texture over its memory.
#include "cuda_runtime.h"

__global__ void spmv_csr(const int *rows, const int *columns, const float *values, cudaTextureObject_t x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0.0f;
    for (int at = rows[row]; at < rows[row + 1]; at++) sum += values[at] * tex1Dfetch<float>(x, columns[at]);
    y[row] = sum;
  }
}

__global__ void gather_pairs(cudaTextureObject_t pairs, const int *index, int2 *out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<int2>(pairs, index[i]);
}
