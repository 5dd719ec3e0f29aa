// Includes and declarations of older programs, and a barrier in a kernel that reads a texture.
#include <complex>
#include <memory.h>
#include <cstdio>

// A struct of both sides.
struct Phase {
  std::complex<float> value;
  float size() const { return value.real() * value.real() + value.imag() * value.imag(); }
};
static_assert(sizeof(Phase) == 8, "two floats");

__shared__ extern float parts[];

// The sum of the texture's elements that belong to a block.
__global__ void sum_texture(cudaTextureObject_t values, float *sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[threadIdx.x] = i < n ? tex1Dfetch<float>(values, i) : 0.0f;
  __syncthreads();
  for (int by = blockDim.x / 2; by > 0; by /= 2) {
    if (threadIdx.x < by) parts[threadIdx.x] += parts[threadIdx.x + by];
    __syncthreads();
  }
  sums[blockIdx.x] = parts[0];
}

// The same, where threads wait in a function.
__device__ float in_warp(float v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
  return v;
}
__global__ void sum_in_warps(cudaTextureObject_t values, float *sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = in_warp(i < n ? tex1Dfetch<float>(values, i) : 0.0f);
  if (threadIdx.x % 32 == 0) sums[i / 32] = sum;
}

int main() {
  std::complex<float> one(1.0f, 0.0f);
  printf("%f\n", one.real());
}
