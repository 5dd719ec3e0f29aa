// A program of several files: this one has the host's part, the headers beside it the kernels and what both sides use.
#include <cstdio>
#include <vector>
#include <sys/stat.h>
#include "stencil.cuh"
#include "common/host_tools.h"
#include "common/settings.h"

#if !defined(__CUDACC__) || __CUDA_ARCH__ < 600
#error "The device's part of this file is for GPUs since Pascal."
#endif

__global__ void scale(float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] *= kScale;
}

int main() {
  std::vector<float> values(1 << 10);
  if (!fill_from_file("values.bin", values)) return 1;
  return run_all(values);
}
