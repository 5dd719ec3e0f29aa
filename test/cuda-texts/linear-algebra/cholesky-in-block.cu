// The Cholesky factor of a small matrix, by one block.
extern "C" __global__ void cholesky(float *a, int n) {
  for (int k = 0; k < n; k++) {
    if (threadIdx.x == 0) a[k * n + k] = sqrtf(a[k * n + k]);
    __syncthreads();
    for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) a[i * n + k] /= a[k * n + k];
    __syncthreads();
    for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x)
      for (int j = k + 1; j <= i; j++) a[i * n + j] -= a[i * n + k] * a[j * n + k];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    for (int j = i + 1; j < n; j++) a[i * n + j] = 0;
}
