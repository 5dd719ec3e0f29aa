// Sorts tiles by digits of 4 bits: lanes with the same digit find each other by a match, and a scan of the counts of all warps gives their places.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#define LOG_RADIX 4
#define RADIX (1 << LOG_RADIX)
#define FULL 0xFFFFFFFF

// Bits of a key in the order of the keys.
template <typename Key>
struct KeyBits;
template <>
struct KeyBits<uint32_t> {
  using type = uint32_t;
  static __device__ __forceinline__ type encode(uint32_t key) { return key; }
  static __device__ __forceinline__ uint32_t decode(type bits) { return bits; }
};
template <>
struct KeyBits<float> {
  using type = uint32_t;
  static __device__ __forceinline__ type encode(float key) {
    const uint32_t bits = __float_as_uint(key);
    return bits ^ (uint32_t(int32_t(bits) >> 31) | 0x80000000u);
  }
  static __device__ __forceinline__ float decode(type bits) { return __uint_as_float(bits ^ (((bits >> 31) - 1) | 0x80000000u)); }
};
template <>
struct KeyBits<int64_t> {
  using type = uint64_t;
  static __device__ __forceinline__ type encode(int64_t key) { return static_cast<type>(key) ^ (1ull << 63); }
  static __device__ __forceinline__ int64_t decode(type bits) { return static_cast<int64_t>(bits ^ (1ull << 63)); }
};

namespace detail {
__device__ __forceinline__ unsigned lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

template <int THREADS>
__device__ int exclusive_scan(int value, int *sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int inclusive = value;
#pragma unroll
  for (int reach = 1; reach <= 16; reach <<= 1) {
    const int before = __shfl_up_sync(FULL, inclusive, reach);
    if (lane >= reach) inclusive += before;
  }
  if (lane == 31) sums[warp] = inclusive;
  __syncthreads();
#pragma unroll
  for (int other = 0; other < THREADS / 32; ++other)
    if (other < warp) inclusive += sums[other];
  return inclusive - value;
}
}  // namespace detail

template <typename Key, int THREADS, int ITEMS>
__global__ void radix_tiles(const Key *__restrict__ keys_in, Key *__restrict__ keys_out, int *__restrict__ order, int first_bit, int last_bit) {
  using Bits = typename KeyBits<Key>::type;
  enum { WARPS = THREADS / 32, TILE = THREADS * ITEMS };
  static_assert(WARPS * RADIX <= THREADS, "a thread scans one count");
  __shared__ int counts[WARPS][RADIX];
  __shared__ int sums[WARPS];
  __shared__ struct {
    Bits keys[TILE];
    unsigned short places[TILE];
  } exchange;

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, begin = warp * 32 * ITEMS + lane;
  const Key *tile = keys_in + blockIdx.x * TILE;
  Bits key[ITEMS];
  unsigned short place[ITEMS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    place[item] = begin + 32 * item;
    key[item] = KeyBits<Key>::encode(tile[place[item]]);
  }

  for (int shift = first_bit; shift < last_bit; shift += LOG_RADIX) {
    for (int at = threadIdx.x; at < WARPS * RADIX; at += THREADS) (&counts[0][0])[at] = 0;
    __syncthreads();

    int rank[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int digit = int(key[item] >> shift) & (RADIX - 1);
      const unsigned peers = __match_any_sync(FULL, digit);
      const int leader = __ffs(peers) - 1;
      int before = 0;
      if (lane == leader) {
        before = counts[warp][digit];
        counts[warp][digit] = before + __popc(peers);
      }
      __syncwarp();
      rank[item] = __shfl_sync(FULL, before, leader) + __popc(peers & detail::lanes_below());
    }
    __syncthreads();

    // All counts of a digit before those of the next one.
    const bool has_count = threadIdx.x < WARPS * RADIX;
    int *const count = &counts[threadIdx.x % WARPS][has_count ? threadIdx.x / WARPS : 0];
    const int start = detail::exclusive_scan<THREADS>(has_count ? *count : 0, sums);
    if (has_count) *count = start;
    __syncthreads();

#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int to = counts[warp][(key[item] >> shift) & (RADIX - 1)] + rank[item];
      exchange.keys[to] = key[item];
      exchange.places[to] = place[item];
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) key[item] = exchange.keys[begin + 32 * item], place[item] = exchange.places[begin + 32 * item];
  }

#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const size_t at = size_t(blockIdx.x) * TILE + begin + 32 * item;
    keys_out[at] = KeyBits<Key>::decode(key[item]);
    order[at] = place[item];
  }
}

int main() {
  constexpr int n = 1 << 16, tile = 128 * 4;
  std::vector<float> keys(n), sorted(n);
  for (int i = 0; i < n; i++) keys[i] = float(i * 7919 % 10007) - 5000.0f;
  float *d_in, *d_out;
  int *d_order;
  cudaMalloc(&d_in, n * sizeof(float)), cudaMalloc(&d_out, n * sizeof(float)), cudaMalloc(&d_order, n * sizeof(int));
  cudaMemcpy(d_in, keys.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  radix_tiles<float, 128, 4><<<n / tile, 128>>>(d_in, d_out, d_order, 0, 32);
  cudaMemcpy(sorted.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i += tile) std::sort(keys.begin() + i, keys.begin() + i + tile, std::less<>());
  printf("%s\n", keys == sorted ? "PASSED" : "FAILED");
}
