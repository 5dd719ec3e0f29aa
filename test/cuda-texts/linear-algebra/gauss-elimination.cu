// Gaussian elimination in two kernels, a column at a time.
extern "C" {
__global__ void fan1(float *m, const float *a, int size, int t) {
  if (threadIdx.x + blockIdx.x * blockDim.x >= size - 1 - t) return;
  *(m + size * (blockDim.x * blockIdx.x + threadIdx.x + t + 1) + t) =
      *(a + size * (blockDim.x * blockIdx.x + threadIdx.x + t + 1) + t) / *(a + size * t + t);
}

__global__ void fan2(const float *m, float *a, float *b, int size, int t) {
  const int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x >= size - 1 - t || y >= size - t) return;
  a[size * (x + 1 + t) + (y + t)] -= m[size * (x + 1 + t) + t] * a[size * t + (y + t)];
  if (y == 0) b[x + 1 + t] -= m[size * (x + 1 + t) + (y + t)] * b[t];
}
}

void solve(float *m, float *a, float *b, int size) {
  dim3 block(16, 16), grid(size / 16 + 1, size / 16 + 1);
  for (int t = 0; t < size - 1; t++) {
    fan1<<<size / 64 + 1, 64>>>(m, a, size, t);
    cudaThreadSynchronize();
    fan2<<<grid, block>>>(m, a, b, size, t);
    cudaThreadSynchronize();
  }
}
