// Equalises the histogram of each tile: counts in shared memory, a scan by a class template, and a table of new levels.
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <iomanip>
#include <iostream>
#include <map>
#include <vector>

#define BINS 256
#define WARP 32
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

using uchar = unsigned char;

template <typename T, unsigned THREADS>
class BlockScan {
 public:
  struct Storage {
    T warps[THREADS / WARP];
  };
  __device__ explicit BlockScan(Storage &storage) : storage_(storage), lane_(threadIdx.x % WARP), warp_(threadIdx.x / WARP) {}
  __device__ T inclusive(T value);

 private:
  Storage &storage_;
  const unsigned lane_, warp_;
  __device__ static T up(T value, unsigned lane) {
#pragma unroll
    for (unsigned d = 1; d < WARP; d <<= 1) {
      const T other = __shfl_up_sync(~0u, value, d);
      if (lane >= d) value += other;
    }
    return value;
  }
};

template <typename T, unsigned THREADS>
__device__ T BlockScan<T, THREADS>::inclusive(T value) {
  value = up(value, lane_);
  if (lane_ == WARP - 1) storage_.warps[warp_] = value;
  __syncthreads();
  if (warp_ == 0) {
    T total = lane_ < THREADS / WARP ? storage_.warps[lane_] : T{};
    total = BlockScan::up(total, lane_);
    if (lane_ < THREADS / WARP) storage_.warps[lane_] = total;
  }
  __syncthreads();
  return warp_ > 0 ? value + storage_.warps[warp_ - 1] : value;
}

template <int TILE_W, int TILE_H>
__global__ void __launch_bounds__(BINS) equaliseTiles(const uchar *__restrict__ src, uchar *__restrict__ dst, int width, int height, size_t pitch, unsigned clip) {
  using Scan = BlockScan<unsigned, BINS>;
  __shared__ unsigned hist[BINS], excess, first;
  __shared__ typename Scan::Storage temp;
  __shared__ uchar lut[BINS];

  const int x0 = blockIdx.x * TILE_W, y0 = blockIdx.y * TILE_H;
  const int w = MIN(TILE_W, width - x0), h = MIN(TILE_H, height - y0), bin = threadIdx.x;
  hist[bin] = 0;
  if (bin == 0) excess = 0, first = ~0u;
  __syncthreads();
  for (int i = bin; i < w * h; i += BINS) atomicAdd(&hist[src[(y0 + i / w) * pitch + x0 + i % w]], 1);
  __syncthreads();
  // what is above the limit is shared by all bins
  if (clip > 0) {
    const unsigned clipped = hist[bin] > clip ? hist[bin] - clip : 0u;
    if (clipped) atomicAdd(&excess, clipped);
    __syncthreads();
    hist[bin] = hist[bin] - clipped + excess / BINS;
  }
  if (hist[bin] != 0) atomicMin(&first, bin);
  const unsigned cdf = Scan(temp).inclusive(hist[bin]);
  __shared__ unsigned least, all;
  if (bin == first) least = cdf;
  if (bin == BINS - 1) all = cdf;
  __syncthreads();
  lut[bin] = all == least ? bin : (uchar)MIN(255u, (255u * (cdf < least ? 0u : cdf - least) + (all - least) / 2) / (all - least));
  __syncthreads();
  for (int i = bin; i < w * h; i += BINS) {
    const size_t at = (y0 + i / w) * pitch + x0 + i % w;
    dst[at] = lut[src[at]];
  }
}

int main() {
  const int width = 1000, height = 700;
  uchar *src, *dst;
  size_t pitch;
  cudaMallocPitch((void **)&src, &pitch, width, height);
  cudaMallocPitch((void **)&dst, &pitch, width, height);
  equaliseTiles<64, 48><<<dim3((width + 63) / 64, (height + 47) / 48), BINS>>>(src, dst, width, height, pitch, 40);
  std::map<int, int> counts;
  std::vector<uchar> host(width * height);
  cudaMemcpy2D(host.data(), width, dst, pitch, width, height, cudaMemcpyDeviceToHost);
  for (uchar v : host) ++counts[v];
  for (const auto &[level, count] : counts) std::cout << std::setw(4) << level << " " << count << "\n";
}
