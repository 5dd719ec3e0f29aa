// Only the kernel has a name of its own; the functions that it calls are overloads.
__device__ int twice(int v) { return v + v; }
__device__ float twice(float v) { return v * 2.0f; }

__global__ void both(const float *f, const int *k, float *y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = twice(f[i]) + twice(k[i]);
}
