#include <cstdio>

template <typename T>
__device__ T clipped(T v, T low, T high) { return v < low ? low : v > high ? high : v; }

template <typename T>
__global__ void clip(T *y, T low, T high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = clipped(y[i], low, high);
}

template <typename T>
void clip_on_device(T *y, T low, T high, int n, cudaStream_t stream = 0) {
  const int threads = 256;
  clip<T><<<(n + threads - 1) / threads, threads, 0, stream>>>(y, low, high, n);
}
template void clip_on_device<float>(float *, float, float, int, cudaStream_t);
template void clip_on_device<int>(int *, int, int, int, cudaStream_t);
