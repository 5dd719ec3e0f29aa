// Colours from a table: the table is a texture of one dimension, between whose entries the hardware interpolates.
#include <cuda_runtime.h>

typedef cudaTextureObject_t Table;

__device__ float4 colour_of(const Table table, float density) { return tex1D<float4>(table, density); }

extern "C" __global__ void apply_table(const float *__restrict__ density, float4 *colours, const Table table, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    colours[i] = colour_of(table, density[i]);
  }
}
