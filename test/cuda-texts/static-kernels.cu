static __global__ void doubled(int *y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] *= 2;
}

namespace {
__global__ void tripled(int *y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] *= 3;
}
}  // namespace
