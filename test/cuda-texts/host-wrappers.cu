#include <iostream>
#include <vector>
#include <stdexcept>
#include <string>

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

void launch_scale(std::vector<float> &values, float by);

__global__ void scale(float *y, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] *= by;
}

void launch_scale(std::vector<float> &values, float by) {
  float *d = nullptr;
  gpuErrchk(cudaMalloc((void **)&d, values.size() * sizeof(float)));
  dim3 block(256), grid((values.size() + block.x - 1) / block.x);
  scale<<<grid, block>>>(d, by, (int)values.size());
  if (cudaGetLastError() != cudaSuccess) throw std::runtime_error("launch failed");
  gpuErrchk(cudaMemcpy(values.data(), d, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  cudaFree(d);
}
