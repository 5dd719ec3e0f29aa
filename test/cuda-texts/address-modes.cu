// Reads textures at given coordinates, also outside of them.
__global__ void sample_line(cudaTextureObject_t line, const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(line, x[i]);
}

__global__ void sample_plane(cudaTextureObject_t plane, const float2 *at, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(plane, at[i].x, at[i].y);
}
