#include <cuda_fp16.h>
#define TILE 16

// C = alpha * A * B + beta * C, in half, with sums in float.
extern "C" __global__ void half_matrix_product(const __half *__restrict__ A, const __half *__restrict__ B, __half *C, int M,
                                               int N, int K, float alpha, float beta) {
  __shared__ __half tileA[TILE][TILE];
  __shared__ __half tileB[TILE][TILE];
  const int row = blockIdx.x / ((N + TILE - 1) / TILE) * TILE + threadIdx.x / TILE;
  const int column = blockIdx.x % ((N + TILE - 1) / TILE) * TILE + threadIdx.x % TILE;
  float sum = 0.0f;
  for (int first = 0; first < K; first += TILE) {
    const int a = first + threadIdx.x % TILE, b = first + threadIdx.x / TILE;
    tileA[threadIdx.x / TILE][threadIdx.x % TILE] = row < M && a < K ? A[row * K + a] : __float2half(0.0f);
    tileB[threadIdx.x / TILE][threadIdx.x % TILE] = b < K && column < N ? B[b * N + column] : __float2half(0.0f);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k)
      sum += __half2float(tileA[threadIdx.x / TILE][k]) * __half2float(tileB[k][threadIdx.x % TILE]);
    __syncthreads();
  }
  if (row < M && column < N) C[row * N + column] = __float2half(alpha * sum + beta * __half2float(C[row * N + column]));
}
