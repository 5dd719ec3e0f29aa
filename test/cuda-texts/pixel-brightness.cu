// Pixels of four bytes, read as floats from 0 to 1, and as they are.
__global__ void brightness(cudaTextureObject_t pixels, float *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    float4 p = tex2D<float4>(pixels, x, y);
    out[y * width + x] = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z + 2 * p.w;
  }
}

__global__ void swap_channels(cudaTextureObject_t pixels, uchar4 *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    const uchar4 p = tex2D<uchar4>(pixels, x, y);
    out[y * width + x] = make_uchar4(p.z, p.y, p.x, p.w);
  }
}

__global__ void read_row(cudaTextureObject_t values, float *out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = tex1D<float>(values, threadIdx.x + 0.5f);
}

__global__ void read_signed_row(cudaTextureObject_t values, int *out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = tex1D<int>(values, threadIdx.x + 0.5f);
}
