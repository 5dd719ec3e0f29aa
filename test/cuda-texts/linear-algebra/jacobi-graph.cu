// Jacobi iterations with the largest change of each block.
#define BLOCK 64
extern "C" __global__ void jacobi(const float *A, const float *b, const float *x, float *x_new, float *change, int n) {
  __shared__ float local_x[BLOCK], changes[BLOCK];
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n; tile += BLOCK) {
    local_x[threadIdx.x] = tile + threadIdx.x < n ? x[tile + threadIdx.x] : 0;
    __syncthreads();
    if (row < n)
      for (int j = 0; j < BLOCK && tile + j < n; ++j)
        if (tile + j != row) sum += A[row * n + tile + j] * local_x[j];
    __syncthreads();
  }
  float moved = 0;
  if (row < n) {
    const float value = (b[row] - sum) / A[row * n + row];
    moved = fabsf(value - x[row]);
    x_new[row] = value;
  }
  changes[threadIdx.x] = moved;
  __syncthreads();
  for (int s = BLOCK / 2; s; s >>= 1) {
    if (threadIdx.x < s) changes[threadIdx.x] = fmaxf(changes[threadIdx.x], changes[threadIdx.x + s]);
    __syncthreads();
  }
  if (!threadIdx.x) change[blockIdx.x] = changes[0];
}
