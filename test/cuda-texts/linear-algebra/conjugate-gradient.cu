// Conjugate gradients in one launch: the grid waits for itself between products, and dot products go from lanes to tiles, blocks and the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

static const char *program = "conjugate-gradient";
#define THREADS_PER_BLOCK 64

struct Csr {
  const int *rows, *columns;
  const float *values;
  int n;
};

__device__ double sum_of_grid = 0.0;

__device__ void multiply(const Csr &a, const float *x, float alpha, float *y, const cg::grid_group &grid) {
  for (int row = grid.thread_rank(); row < a.n; row += grid.size()) {
    float sum = 0;
    for (int at = a.rows[row]; at < a.rows[row + 1]; at++) sum += alpha * a.values[at] * x[a.columns[at]];
    y[row] = sum;
  }
}

__device__ void add_scaled(float a, const float *x, float *y, int n, const cg::grid_group &grid) {
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = a * x[i] + y[i];
}

__device__ void scale_and_add(float a, const float *x, float *y, int n, const cg::grid_group &grid) {
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i] + a * y[i];
}

// Thread 0 has set the sum to zero, and the grid has waited since.
__device__ double dot(const float *a, const float *b, int n, const cg::thread_block &block, const cg::grid_group &grid) {
  extern __shared__ double of_tiles[];
  double sum = 0.0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += (double)a[i] * b[i];
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  sum = cg::reduce(tile, sum, cg::plus<double>());
  if (tile.thread_rank() == 0) of_tiles[tile.meta_group_rank()] = sum;
  cg::sync(block);
  if (tile.meta_group_rank() == 0) {
    sum = tile.thread_rank() < tile.meta_group_size() ? of_tiles[tile.thread_rank()] : 0.0;
    sum = cg::reduce(tile, sum, cg::plus<double>());
    if (tile.thread_rank() == 0) atomicAdd(&sum_of_grid, sum);
  }
  cg::sync(grid);
  const double result = sum_of_grid;
  cg::sync(grid);
  if (grid.thread_rank() == 0) sum_of_grid = 0.0;
  grid.sync();
  return result;
}

extern "C" __global__ void solve(Csr a, float *x, float *r, float *p, float *ap, float tolerance, int most, double *residuals, int *iterations) {
  cg::thread_block block = cg::this_thread_block();
  cg::grid_group grid = cg::this_grid();
  multiply(a, x, 1.0f, ap, grid);
  cg::sync(grid);
  add_scaled(-1.0f, ap, r, a.n, grid);
  cg::sync(grid);

  double r1 = dot(r, r, a.n, block, grid), r0 = 0.0;
  int k = 1;
  while (r1 > tolerance * tolerance && k <= most) {
    if (k > 1) {
      scale_and_add((float)(r1 / r0), r, p, a.n, grid);
    } else {
      for (int i = grid.thread_rank(); i < a.n; i += grid.size()) p[i] = r[i];
    }
    cg::sync(grid);
    multiply(a, p, 1.0f, ap, grid);
    cg::sync(grid);
    const float alpha = static_cast<float>(r1 / dot(p, ap, a.n, block, grid));
    add_scaled(alpha, p, x, a.n, grid);
    add_scaled(-alpha, ap, r, a.n, grid);
    cg::sync(grid);
    r0 = r1;
    r1 = dot(r, r, a.n, block, grid);
    if (grid.thread_rank() == 0) residuals[k - 1] = r1;
    k++;
  }
  if (grid.thread_rank() == 0) *iterations = k - 1;
}

int main() {
  const int n = 1024, nonzero = 3 * n - 2;
  int *rows, *columns, *iterations;
  float *values, *x, *r, *p, *ap;
  double *residuals;
  cudaMallocManaged((void **)&rows, (n + 1) * sizeof(int));
  cudaMallocManaged((void **)&columns, nonzero * sizeof(int));
  cudaMallocManaged((void **)&values, nonzero * sizeof(float));
  for (float **array : {&x, &r, &p, &ap}) cudaMallocManaged((void **)array, n * sizeof(float));
  cudaMallocManaged((void **)&residuals, 100 * sizeof(double));
  cudaMallocManaged((void **)&iterations, sizeof(int));
  int at = 0;
  for (int i = 0; i < n; i++) {
    rows[i] = at;
    for (int j = i - 1; j <= i + 1; j++)
      if (j >= 0 && j < n) columns[at] = j, values[at++] = i == j ? 4.0f : -1.0f;
    x[i] = 0, r[i] = 1;
  }
  rows[n] = at;
  Csr a = {rows, columns, values, n};
  float tolerance = 1e-5f;
  int most = 100, blocks = 0;
  const size_t shared_bytes = THREADS_PER_BLOCK / 32 * sizeof(double);
  cudaDeviceProp properties = {0};
  cudaGetDeviceProperties(&properties, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, solve, THREADS_PER_BLOCK, shared_bytes);
  void *arguments[] = {&a, &x, &r, &p, &ap, &tolerance, &most, &residuals, &iterations};
  cudaLaunchCooperativeKernel((void *)solve, properties.multiProcessorCount * blocks, THREADS_PER_BLOCK, arguments, shared_bytes, NULL);
  cudaDeviceSynchronize();
  printf("%s: %d iterations\n", program, *iterations);
  return 0;
}
