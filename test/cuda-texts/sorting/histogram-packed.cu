// Histograms with four counters in a word: bytes of each thread in shared memory, which sums of four products add up, and tagged updates by warps.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
#include <ctime>

typedef unsigned int uint;
typedef unsigned char uchar;

#define BINS 32
#define THREADS 64
#define BYTES_PER_THREAD 240  // a counter of 8 bits must not overflow
#define UMUL(a, b) ((a) * (b))
#define UMAD(a, b, c) (UMUL((a), (b)) + (c))

union quad {
  uint word;
  uchar4 bytes;
  uchar byte[4];
};
#if defined(__CUDACC__)
static_assert(sizeof(quad) == 4, "");
#endif

// Counters of thread t are every THREADS bytes, so the words of a bin hold the counters of all threads.
__device__ inline void add_byte(uchar *counters, uint data) { counters[UMAD(data, THREADS, threadIdx.x)]++; }
__device__ inline void add_word(uchar *counters, uint data) {
  add_byte(counters, (data >> 0) & 0x1FU);
  add_byte(counters, (data >> 8) & 0x1FU);
  add_byte(counters, (data >> 16) & 0x1FU);
  add_byte(counters, (data >> 24) & 0x1FU);
}

__global__ void histogram_private(const uint4 *__restrict__ data, uint count, uint *partial) {
  __shared__ uint counters[THREADS * BINS / 4];
  uchar *const mine = (uchar *)counters;
#pragma unroll
  for (uint i = 0; i < BINS / 4; i++) counters[threadIdx.x + i * THREADS] = 0;
  __syncthreads();
  uint at = blockIdx.x * (THREADS * BYTES_PER_THREAD / 16) + threadIdx.x;
  const uint end = min(count, (blockIdx.x + 1) * (THREADS * BYTES_PER_THREAD / 16));
  for (; at < end; at += THREADS) {
    const uint4 quads = data[at];
    add_word(mine, quads.x), add_word(mine, quads.y), add_word(mine, quads.z), add_word(mine, quads.w);
  }
  __syncthreads();
  if (threadIdx.x < BINS) {
    // Each thread begins at another bank.
    uint sum = 0, place = threadIdx.x % (THREADS / 4);
    for (uint i = 0; i < THREADS / 4; ++i) {
      sum = __dp4a(counters[threadIdx.x * (THREADS / 4) + place], 0x01010101u, sum);
      if (++place == THREADS / 4) place = 0;
    }
    partial[blockIdx.x * BINS + threadIdx.x] = sum;
  }
}

// One block for each bin.
template <uint WIDTH>
__global__ void merge_partial(const uint *partial, uint count, uint *histogram) {
  uint sum = 0;
  for (uint i = threadIdx.x; i < count; i += WIDTH) sum += partial[blockIdx.x + i * BINS];
  __shared__ uint sums[WIDTH];
  sums[threadIdx.x] = sum;
  for (uint stride = WIDTH / 2; stride > 0; stride >>= 1) {
    __syncthreads();
    if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) histogram[blockIdx.x] = sums[0];
}

// Each channel of a picture: lanes with the same value add once, together.
__global__ void histogram_channels(const uchar4 *pixels, int n, uint *histograms) {
  extern __shared__ uint s_hist[];
  uint(*of_channel)[256] = (uint(*)[256])s_hist;
  for (int i = threadIdx.x; i < 4 * 256; i += blockDim.x) s_hist[i] = 0;
  __syncthreads();
  for (int start = blockIdx.x * blockDim.x; start < n; start += gridDim.x * blockDim.x) {
    const int i = start + threadIdx.x;
    const uint active = __ballot_sync(0xffffffffu, i < n);
    if (i >= n) continue;
    quad pixel;
    pixel.bytes = pixels[i];
    for (int channel = 0; channel < 4; ++channel) {
      const uint value = pixel.byte[channel], same = __match_any_sync(active, value);
      if (__ffs(same) - 1 == threadIdx.x % warpSize) atomicAdd(&of_channel[channel][value], __popc(same));
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 4 * 256; i += blockDim.x)
    if (s_hist[i] != 0) atomicAdd(histograms + i, s_hist[i]);
}

int main() {
  const uint bytes = 1 << 20, blocks = (bytes + THREADS * BYTES_PER_THREAD - 1) / (THREADS * BYTES_PER_THREAD);
  uchar *data = new uchar[bytes];
  std::memset(data, 7, bytes);
  uint *d_data, *d_partial, histogram[BINS];
  cudaMalloc(&d_data, bytes);
  cudaMalloc(&d_partial, (blocks + 1) * BINS * sizeof(uint));
  cudaMemcpy(d_data, data, bytes, cudaMemcpyHostToDevice);
  histogram_private<<<blocks, THREADS>>>((const uint4 *)d_data, bytes / 16, d_partial + BINS);
  merge_partial<64><<<BINS, 64>>>(d_partial + BINS, blocks, d_partial);
  cudaMemcpy(histogram, d_partial, sizeof histogram, cudaMemcpyDeviceToHost);
  delete[] data;
  return histogram[7] == bytes ? 0 : 1;
}
