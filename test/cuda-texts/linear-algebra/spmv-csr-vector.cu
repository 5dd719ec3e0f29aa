// Sparse matrix times vector: a warp for each row of a matrix in CSR format.
#include <cuda_runtime.h>

__global__ void spmv_csr(const int *__restrict__ row_ptr, const int *__restrict__ col, const double *__restrict__ val,
                         const double *__restrict__ x, double *__restrict__ y, int rows) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
  if (warp >= rows) return;
  double sum = 0;
  for (int j = row_ptr[warp] + lane; j < row_ptr[warp + 1]; j += warpSize) sum += val[j] * __ldg(&x[col[j]]);
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  if (lane == 0) y[warp] = sum;
}
