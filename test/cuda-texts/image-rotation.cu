// Rotates a picture about its centre. The texture is read with normalized coordinates and repeats itself beyond its edges.
__global__ void rotate_image(float *out, cudaTextureObject_t image, int width, int height, float angle) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = (x + 0.5f) / width - 0.5f;
  const float v = (y + 0.5f) / height - 0.5f;
  const float tu = u * cosf(angle) - v * sinf(angle) + 0.5f;
  const float tv = v * cosf(angle) + u * sinf(angle) + 0.5f;
  out[y * width + x] = tex2D<float>(image, tu, tv);
}
