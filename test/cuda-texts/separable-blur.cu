// A blur in two passes: along rows from a texture to a surface, then along columns from the texture of that surface.
#define RADIUS 3

__constant__ float weights[2 * RADIUS + 1] = {0.015625f, 0.09375f, 0.234375f, 0.3125f, 0.234375f, 0.09375f, 0.015625f};

__global__ void blur_rows(cudaTextureObject_t source, cudaSurfaceObject_t target, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = -RADIUS; k <= RADIUS; k++) sum += weights[k + RADIUS] * tex2D<float>(source, x + k + 0.5f, y + 0.5f);
  surf2Dwrite(sum, target, x * sizeof(float), y);
}

__global__ void blur_columns(cudaTextureObject_t source, cudaSurfaceObject_t target, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = -RADIUS; k <= RADIUS; k++) sum += weights[k + RADIUS] * tex2D<float>(source, x + 0.5f, y + k + 0.5f);
  surf2Dwrite<float>(sum, target, x * (int)sizeof(float), y);
}
