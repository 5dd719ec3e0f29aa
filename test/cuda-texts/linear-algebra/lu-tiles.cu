// Factors L and U of a matrix by tiles, in place: the diagonal tile, the tiles of its row and its column, and the rest.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#ifdef TILE_OF_OPTIONS
#define TILE TILE_OF_OPTIONS
#else
#define TILE 16
#endif

typedef enum outcome_e { MADE, NO_MEMORY } outcome_t;
#define AT(row, column) m[(size_t)(offset + (row)) * dim + offset + (column)]

__global__ void factor_diagonal(float *m, int dim, int offset) {
  __shared__ float tile[TILE][TILE];
  for (int row = 0; row < TILE; row++) tile[row][threadIdx.x] = AT(row, threadIdx.x);
  __syncthreads();
  for (int k = 0; k < TILE - 1; k++) {
    if (threadIdx.x > k) {
      for (int j = 0; j < k; j++) tile[threadIdx.x][k] -= tile[threadIdx.x][j] * tile[j][k];
      tile[threadIdx.x][k] /= tile[k][k];
    }
    __syncthreads();
    if (threadIdx.x > k)
      for (int j = 0; j < k + 1; j++) tile[k + 1][threadIdx.x] -= tile[k + 1][j] * tile[j][threadIdx.x];
    __syncthreads();
  }
  for (int row = 1; row < TILE; row++) AT(row, threadIdx.x) = tile[row][threadIdx.x];
}

// The first half of the threads solves for a tile of the row, the second half for a tile of the column.
__global__ void factor_border(float *m, int dim, int offset) {
  __shared__ float diagonal[TILE][TILE], row_tile[TILE][TILE], column_tile[TILE][TILE + 1];
  const int half = threadIdx.x / TILE, index = threadIdx.x % TILE, step = (blockIdx.x + 1) * TILE;
  for (int i = half; i < TILE; i += 2) diagonal[i][index] = AT(i, index);
  for (int i = half; i < TILE; i += 2) {
    row_tile[i][index] = AT(i, step + index);
    column_tile[i][index] = AT(step + i, index);
  }
  __syncthreads();
  if (half == 0) {
    for (int i = 1; i < TILE; i++)
      for (int j = 0; j < i; j++) row_tile[i][index] -= diagonal[i][j] * row_tile[j][index];
  } else {
    for (int i = 0; i < TILE; i++) {
      for (int j = 0; j < i; j++) column_tile[index][i] -= column_tile[index][j] * diagonal[j][i];
      column_tile[index][i] /= diagonal[i][i];
    }
  }
  __syncthreads();
  for (int i = half; i < TILE; i += 2) {
    AT(i, step + index) = row_tile[i][index];
    AT(step + i, index) = column_tile[i][index];
  }
}

__global__ void update_rest(float *m, int dim, int offset) {
  __shared__ float left[TILE][TILE], above[TILE][TILE];
  const int row = (blockIdx.y + 1) * TILE + threadIdx.y, column = (blockIdx.x + 1) * TILE + threadIdx.x;
  above[threadIdx.y][threadIdx.x] = AT(threadIdx.y, column);
  left[threadIdx.y][threadIdx.x] = AT(row, threadIdx.x);
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * above[k][threadIdx.x];
  AT(row, column) -= sum;
}

void factor(float *m, int dim) {
  int i = 0;
  for (; i < dim - TILE; i += TILE) {
    const int rest = (dim - i) / TILE - 1;
    factor_diagonal<<<1, TILE>>>(m, dim, i);
    factor_border<<<rest, TILE * 2>>>(m, dim, i);
    update_rest<<<dim3(rest, rest), dim3(TILE, TILE)>>>(m, dim, i);
  }
  factor_diagonal<<<1, TILE>>>(m, dim, i);
}

outcome_t make_matrix(float **to, int size) {
  float *m = (float *)malloc(sizeof(float) * size * size);
  if (m == NULL) return NO_MEMORY;
  for (int i = 0; i < size * size; i++) m[i] = i % (size + 1) == 0 ? size : (float)(i % 13) / 13;
  *to = m;
  return MADE;
}

int main(int argc, char *argv[]) {
  int dim = 32;
  float *m, *d_m;
  struct timeval begin, end;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "-s") && i + 1 < argc) dim = atoi(argv[++i]);
  if (make_matrix(&m, dim) != MADE) {
    fprintf(stderr, "no memory for %d rows\n", dim);
    exit(EXIT_FAILURE);
  }
  cudaMalloc((void **)&d_m, dim * dim * sizeof(float));
  cudaMemcpy(d_m, m, dim * dim * sizeof(float), cudaMemcpyHostToDevice);
  gettimeofday(&begin, NULL);
  factor(d_m, dim);
  cudaDeviceSynchronize();
  gettimeofday(&end, NULL);
  printf("%f s\n", (end.tv_sec - begin.tv_sec) + (end.tv_usec - begin.tv_usec) * 1e-6);
  cudaMemcpy(m, d_m, dim * dim * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_m);
  free(m);
  return 0;
}
