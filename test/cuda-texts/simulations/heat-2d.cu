// Explicit heat equation on a plate: tiles with a halo in shared memory, edges held.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define BX 16
#define BY 8
#define CHECK(call)                                                                     \
  do {                                                                                  \
    cudaError_t err = (call);                                                           \
    if (err != cudaSuccess) {                                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      exit(EXIT_FAILURE);                                                               \
    }                                                                                   \
  } while (0)

__global__ void heat_step(const float *__restrict__ u, float *__restrict__ next, int nx, int ny, float r) {
  __shared__ float tile[BY + 2][BX + 2];
  const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  auto at = [=](int i, int j) { return u[min(max(j, 0), ny - 1) * nx + min(max(i, 0), nx - 1)]; };
  tile[ty][tx] = at(x, y);
  if (threadIdx.x == 0) tile[ty][0] = at(x - 1, y);
  if (threadIdx.x == BX - 1) tile[ty][BX + 1] = at(x + 1, y);
  if (threadIdx.y == 0) tile[0][tx] = at(x, y - 1);
  if (threadIdx.y == BY - 1) tile[BY + 1][tx] = at(x, y + 1);
  __syncthreads();
  if (x >= nx || y >= ny) return;
  const bool edge = x == 0 || y == 0 || x == nx - 1 || y == ny - 1;
  const float c = tile[ty][tx];
  next[y * nx + x] = edge ? c : c + r * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] - 4 * c);
}

int main() {
  const int nx = 64, ny = 48;
  float *a, *b;
  CHECK(cudaMalloc(&a, nx * ny * sizeof(float)));
  CHECK(cudaMalloc(&b, nx * ny * sizeof(float)));
  dim3 block(BX, BY), grid((nx + BX - 1) / BX, (ny + BY - 1) / BY);
  for (int step = 0; step < 100; ++step) {
    heat_step<<<grid, block>>>(a, b, nx, ny, 0.2f);
    CHECK(cudaGetLastError());
    float *t = a;
    a = b;
    b = t;
  }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  return 0;
}
