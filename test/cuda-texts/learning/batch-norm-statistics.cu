// Statistics of each channel, then the normalisation: types of accumulators, pairs that are reduced, and memory of any type.
#include <cuda_runtime.h>
#include <cmath>
#include <type_traits>

constexpr int kWarpSize = 32;
#if CUDART_VERSION >= 9000
#define WARP_SHFL_XOR(v, mask) __shfl_xor_sync(0xffffffff, (v), (mask), kWarpSize)
#else
#define WARP_SHFL_XOR(v, mask) __shfl_xor((v), (mask), kWarpSize)
#endif

template <typename T>
struct acc_type;
template <>
struct acc_type<float> { using type = double; };
template <>
struct acc_type<double> { using type = double; };
template <typename T>
using acc_type_t = typename acc_type<std::remove_const_t<T>>::type;

template <typename T>
struct SharedMemory {
  __device__ inline operator T *() {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
  __device__ inline operator const T *() const {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
};
// specialize for double to avoid unaligned memory access compile errors
template <>
struct SharedMemory<double> {
  __device__ inline operator double *() {
    extern __shared__ double __smem_d[];
    return (double *)__smem_d;
  }
};

template <typename acc_t>
struct Pair {
  acc_t v1, v2;
  __device__ Pair() {}
  __device__ Pair(acc_t first, acc_t second) : v1(first), v2(second) {}
  __device__ explicit Pair(int v) : v1(static_cast<acc_t>(v)), v2(static_cast<acc_t>(v)) {}
  __device__ Pair &operator+=(const Pair &a) {
    v1 += a.v1;
    v2 += a.v2;
    return *this;
  }
};

template <typename T>
static __device__ __forceinline__ T warpSum(T val) {
#pragma unroll
  for (int i = 0; i < 5; ++i) val += WARP_SHFL_XOR(val, 1 << i);
  return val;
}
template <typename acc_t>
static __device__ __forceinline__ Pair<acc_t> warpSum(Pair<acc_t> value) {
  value.v1 = warpSum(value.v1);
  value.v2 = warpSum(value.v2);
  return value;
}

template <typename acc_t, typename Op>
__device__ Pair<acc_t> reduce(Op op, int plane, int N, int S) {
  Pair<acc_t> sum(0);
  for (int batch = threadIdx.y; batch < N; batch += blockDim.y)
    for (int x = threadIdx.x; x < S; x += blockDim.x) sum += op(batch, plane, x);
  sum = warpSum(sum);
  SharedMemory<acc_t> smem;
  acc_t *shared = smem;
  const int tid = threadIdx.x + threadIdx.y * blockDim.x;
  if (tid % kWarpSize == 0) {
    shared[2 * (tid / kWarpSize)] = sum.v1;
    shared[2 * (tid / kWarpSize) + 1] = sum.v2;
  }
  __syncthreads();
  sum = Pair<acc_t>(0);
  for (int i = 0; i < blockDim.x * blockDim.y / kWarpSize; ++i) sum += {shared[2 * i], shared[2 * i + 1]};
  return sum;
}

template <typename scalar_t, typename accscalar_t = acc_type_t<scalar_t>>
struct Moments {
  const scalar_t *input;
  int channels, size;
  __device__ __forceinline__ Pair<accscalar_t> operator()(int batch, int plane, int n) const {
    const accscalar_t v = input[(batch * channels + plane) * size + n];
    return {v, v * v};
  }
};

template <typename scalar_t>
__global__ void batch_norm_collect(const scalar_t *input, scalar_t *mean, scalar_t *invstd, int N, int C, int S, double epsilon) {
  using acc_t = acc_type_t<scalar_t>;
  const auto sum = reduce<acc_t>(Moments<scalar_t>{input, C, S}, blockIdx.x, N, S);
  const acc_t count = N * S, m = sum.v1 / count;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    mean[blockIdx.x] = static_cast<scalar_t>(m);
    invstd[blockIdx.x] = static_cast<scalar_t>(1 / sqrt(sum.v2 / count - m * m + epsilon));
  }
}

template <typename scalar_t>
__global__ void batch_norm_transform(scalar_t *x, const scalar_t *mean, const scalar_t *invstd, const scalar_t *weight, int C, int S, int total) {
  for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const auto c = i / S % C;
    x[i] = (x[i] - mean[c]) * invstd[c] * (weight == nullptr ? scalar_t(1) : weight[c]);
  }
}

void batch_norm(float *x, float *mean, float *invstd, const float *weight, int N, int C, int S) {
  const dim3 block(32, 4);
  batch_norm_collect<<<C, block, 2 * sizeof(double) * block.y>>>(x, mean, invstd, N, C, S, 1e-5);
  batch_norm_transform<<<(N * C * S + 255) / 256, 256>>>(x, mean, invstd, weight, C, S, N * C * S);
}
