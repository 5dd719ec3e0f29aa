// Asian options by simulated paths: Philox of cuRAND, four numbers at a time, and sums of structs over lanes, warps and the block.
#include <cuda_runtime.h>
#include <curand.h>
#include <curand_kernel.h>
#include <cmath>
#include <iostream>
#include <numeric>
#include <vector>

template <typename T>
struct Moments {
  T sum, squares;
  unsigned count;
  __host__ __device__ Moments() : sum(0), squares(0), count(0) {}
  __host__ __device__ explicit Moments(T value) : sum(value), squares(value * value), count(1) {}
  __host__ __device__ Moments &operator+=(const Moments &other) {
    sum += other.sum;
    squares += other.squares;
    count += other.count;
    return *this;
  }
};
template <typename T>
__host__ __device__ inline Moments<T> operator+(Moments<T> a, const Moments<T> &b) {
  return a += b;
}

// Shuffles any type, word by word.
template <typename T>
__device__ T shuffle_down(const T &value, int offset) {
  static_assert(sizeof(T) % sizeof(int) == 0, "whole words");
  constexpr int words = sizeof(T) / sizeof(int);
  T result;
  const int *from = reinterpret_cast<const int *>(&value);
  int *to = reinterpret_cast<int *>(&result);
#pragma unroll
  for (int i = 0; i < words; ++i) to[i] = __shfl_down_sync(0xffffffff, from[i], offset);
  return result;
}

template <typename T>
__device__ T block_sum(T value, T *of_warps) {
  for (int offset = warpSize / 2; offset; offset /= 2) value += shuffle_down(value, offset);
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < blockDim.x / warpSize; ++warp) value += of_warps[warp];
  return value;
}

struct Market {
  float spot, strike, drift, deviation, discount;
  int steps;
};

// The polar form draws an unknown number of times, so normal numbers come from the transform of Box and Muller.
__device__ inline void box_muller(float u, float v, float &a, float &b) {
  const float radius = sqrtf(-2.0f * logf(u));
  sincospif(2.0f * v, &a, &b);
  a *= radius;
  b *= radius;
}

__global__ void asian_option(Market market, unsigned long long seed, int paths, double *sums, unsigned int *count) {
  extern __shared__ __align__(sizeof(double)) unsigned char memory[];
  auto *const of_warps = reinterpret_cast<Moments<double> *>(memory);
  Moments<double> mine;
  for (int path = blockIdx.x * blockDim.x + threadIdx.x; path < paths; path += gridDim.x * blockDim.x) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, path, 0, &state);
    float price[2] = {market.spot, market.spot}, mean[2] = {0, 0};
    for (int step = 0; step < market.steps; step += 4) {
      const float4 u = curand_uniform4(&state);
      float normal[4];
      box_muller(u.x, u.y, normal[0], normal[1]);
      box_muller(u.z, u.w, normal[2], normal[3]);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        for (int antithetic = 0; antithetic < 2; ++antithetic) {
          price[antithetic] *= expf(market.drift + market.deviation * (antithetic ? -normal[k] : normal[k]));
          mean[antithetic] += price[antithetic] / market.steps;
        }
    }
    const float gain = 0.5f * (fmaxf(mean[0] - market.strike, 0.f) + fmaxf(mean[1] - market.strike, 0.f));
    mine = mine + Moments<double>(gain * market.discount);
  }
  mine = block_sum(mine, of_warps);
  if (threadIdx.x == 0) {
    atomicAdd(&sums[0], mine.sum);
    atomicAdd(&sums[1], mine.squares);
    atomicAdd(count, mine.count);
  }
}

int main() {
  const Market market{100, 100, (0.05f - 0.02f) / 16, 0.2f / 4, std::exp(-0.05f), 16};
  double *d_sums;
  cudaMalloc(&d_sums, 3 * sizeof(double));
  cudaMemset(d_sums, 0, 3 * sizeof(double));
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  asian_option<<<32, 128, 4 * sizeof(Moments<double>), stream>>>(market, 1234ULL, 1 << 20, d_sums, reinterpret_cast<unsigned *>(d_sums + 2));
  cudaStreamSynchronize(stream);
  std::vector<double> sums(3);
  cudaMemcpy(sums.data(), d_sums, 3 * sizeof(double), cudaMemcpyDeviceToHost);
  const double n = 1 << 20, mean = sums[0] / n, deviation = std::sqrt((sums[1] / n - mean * mean) / n);
  std::cout << mean << " +- " << 1.96 * deviation << std::endl;
}
