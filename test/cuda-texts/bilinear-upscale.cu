// Enlarges a picture. The texture functions return their value by a pointer, the older of their two forms.
#include <stdio.h>
#include <texture_types.h>
#include <texture_indirect_functions.h>

template <typename T>
__device__ inline T sample(cudaTextureObject_t texture_object, float x, float y) {
  T value;
  tex2D(&value, texture_object, x, y);
  return value;
}

#define FACTOR 4

__global__ void upscale(cudaTextureObject_t image, float2 *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width * FACTOR && y < height * FACTOR)
    out[y * width * FACTOR + x] = sample<float2>(image, (x + 0.5f) / FACTOR, (y + 0.5f) / FACTOR);
}

int main() {
  cudaTextureObject_t none = 0;
  printf("%llu\n", none);
  return 0;
}
