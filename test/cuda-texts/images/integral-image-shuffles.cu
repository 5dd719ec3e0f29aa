// The integral image: rows by shuffles of packed bytes, then columns by a warp for each group of columns.
#include <cuda_runtime.h>
#include <stdio.h>

// Utility function to extract unsigned chars from an unsigned integer
__device__ uchar4 uint_to_uchar4(const unsigned int in) {
  return make_uchar4((in & 0x000000ff) >> 0, (in & 0x0000ff00) >> 8, (in & 0x00ff0000) >> 16, (in & 0xff000000) >> 24);
}
// Utility for dealing with vector data at different levels.
struct packed_result {
  uint4 x, y, z, w;
};
__device__ packed_result get_prefix_sum(const uint4 &data, const int &lane_id) {
  const unsigned words[4] = {data.x, data.y, data.z, data.w};
  unsigned int result[16], sum = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const uchar4 four = uint_to_uchar4(words[i >> 2]);
    const unsigned char bytes[] = {four.x, four.y, four.z, four.w};
    result[i] = sum += bytes[i & 3];
  }
#pragma unroll
  for (int i = 1; i <= 32; i *= 2) {
    const unsigned int mask = 0xffffffffU, n = __shfl_up_sync(mask, sum, i, 32);
    if (lane_id >= i) {
      sum += n;
#pragma unroll
      for (int j = 0; j < 16; j++) result[j] += n;
    }
  }
  packed_result out;
  out.x = make_uint4(result[0], result[1], result[2], result[3]);
  out.y = make_uint4(result[4], result[5], result[6], result[7]);
  out.z = make_uint4(result[8], result[9], result[10], result[11]);
  out.w = make_uint4(result[12], result[13], result[14], result[15]);
  return out;
}

// A warp for each row of up to 512 bytes, which are 32 groups of 16.
__global__ void shfl_intimage_rows(const uint4 *img, uint4 *integral_image, int groups, int height) {
  const int lane_id = threadIdx.x % warpSize, row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= height) return;
  const uint4 data = lane_id < groups ? img[row * groups + lane_id] : uint4{0, 0, 0, 0};
  const packed_result result = get_prefix_sum(data, lane_id);
  if (lane_id >= groups) return;
  uint4 *const at = &integral_image[(row * groups + lane_id) * 4];
  at[0] = result.x, at[1] = result.y, at[2] = result.z, at[3] = result.w;
}

__global__ void shfl_vertical_shfl(unsigned int *img, int width, int height) {
  __shared__ unsigned int sums[32][9];
  const int tidx = blockIdx.x * blockDim.x + threadIdx.x, lane_id = threadIdx.y;
  unsigned int stepSum = 0;
  for (int step = 0; step * 32 < height; step++) {
    const int row = step * 32 + lane_id;
    const bool inside = row < height && tidx < width;
    sums[lane_id][threadIdx.x] = inside ? img[row * width + tidx] : 0;
    __syncthreads();
    // the sums of 32 rows, by halves
    for (int i = 1; i < 32; i <<= 1) {
      const unsigned int above = lane_id >= i ? sums[lane_id - i][threadIdx.x] : 0u;
      __syncthreads();
      sums[lane_id][threadIdx.x] += above;
      __syncthreads();
    }
    if (inside) img[row * width + tidx] = sums[lane_id][threadIdx.x] + stepSum;
    stepSum += sums[31][threadIdx.x];
    __syncthreads();
  }
}

int main(int argc, char *argv[]) {
  int w = 512, h = 480, dev = 0;
  cudaDeviceProp deviceProp;
  cudaGetDeviceProperties(&deviceProp, dev);
  printf("> Detected Compute SM %d.%d hardware with %d multi-processors\n", deviceProp.major, deviceProp.minor, deviceProp.multiProcessorCount);
  uint4 *d_data, *d_integral;
  cudaMalloc((void **)&d_data, w * h);
  cudaMalloc((void **)&d_integral, 4 * w * h);
  cudaFuncSetCacheConfig(shfl_intimage_rows, cudaFuncCachePreferL1);
  shfl_intimage_rows<<<(h + 3) / 4, dim3(32, 4)>>>(d_data, d_integral, w / 16, h);
  shfl_vertical_shfl<<<(w + 7) / 8, dim3(8, 32)>>>((unsigned int *)d_integral, w, h);
  return cudaDeviceSynchronize() == cudaSuccess ? EXIT_SUCCESS : EXIT_FAILURE;
}
