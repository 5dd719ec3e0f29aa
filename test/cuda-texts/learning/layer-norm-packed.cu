// Layer normalisation: a warp normalises a row with loads and stores of 16 bytes.
#include <cuda_runtime.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARP_SIZE 32U
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))

inline void cuda_check(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}

template <class ElementType>
struct alignas(16) Packed128 {
  Packed128() = default;
  __device__ explicit Packed128(int4 bits) {
    static_assert(sizeof(bits) == sizeof(payload), "Size mismatch.");
    memcpy(&payload, &bits, sizeof(bits));
  }
  __device__ ElementType &operator[](int index) { return payload[index]; }
  __device__ const ElementType &operator[](int index) const { return payload[index]; }
  __device__ int4 get_bits() const {
    int4 bits;
    memcpy(&bits, &payload, sizeof(bits));
    return bits;
  }
  static constexpr const size_t size = sizeof(int4) / sizeof(ElementType);
  ElementType payload[size];
};
typedef Packed128<float> f128;

__device__ inline f128 load128cs(const float *address) { return f128{__ldcs(reinterpret_cast<const int4 *>(address))}; }
__device__ inline void store128cs(float *target, f128 value) { __stcs(reinterpret_cast<int4 *>(target), value.get_bits()); }

__device__ inline float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
  return val;
}

__global__ void __launch_bounds__(128) layernorm_forward(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd,
                                                         const float *__restrict__ inp, const float *__restrict__ weight,
                                                         const float *__restrict__ bias, int N, int C) {
  const int lane_id = threadIdx.x % WARP_SIZE;
  const int idx = blockIdx.x * (blockDim.x / WARP_SIZE) + threadIdx.x / WARP_SIZE;
  if (idx >= N) return;
  const float *x = inp + idx * C;
  float sum = 0.0f;
  for (int c = lane_id * f128::size; c < C; c += WARP_SIZE * f128::size) {
    const f128 packed = load128cs(x + c);
    for (int k = 0; k < f128::size; ++k) sum += packed[k];
  }
  const float m = warpReduceSum(sum) / C;
  sum = 0.0f;
  for (int c = lane_id * f128::size; c < C; c += WARP_SIZE * f128::size) {
    const f128 packed = load128cs(x + c);
    for (int k = 0; k < packed.size; ++k) sum += (packed[k] - m) * (packed[k] - m);
  }
  const float s = rsqrtf(warpReduceSum(sum) / C + 1e-5f);
  if (lane_id == 0 && mean != nullptr) __stcs(mean + idx, m);
  if (lane_id == 0 && rstd != nullptr) __stcs(rstd + idx, s);
  for (int c = lane_id * f128::size; c < C; c += WARP_SIZE * f128::size) {
    const f128 packed = load128cs(x + c), w = f128{*reinterpret_cast<const int4 *>(weight + c)};
    const f128 b = f128{*reinterpret_cast<const int4 *>(bias + c)};
    f128 o;
    for (int k = 0; k < f128::size; ++k) o[k] = s * (packed[k] - m) * w[k] + b[k];
    store128cs(out + idx * C + c, o);
  }
}

void layernorm(float *out, float *mean, float *rstd, float *inp, const float *weight, const float *bias, int B, int T, int C) {
  const int block_size = 128;
  const int N = B * T;
  layernorm_forward<<<CEIL_DIV(N * WARP_SIZE, block_size), block_size>>>(out, mean, rstd, inp, weight, bias, N, C);
  cudaCheck(cudaGetLastError());
}
