// One level of a pyramid: weights as members of classes, whole rows in shared memory, and pixels that are saturated.
#include <cuda_runtime.h>
#include <climits>
#include <cmath>
#include <vector>

namespace pyramid {

template <typename T>
struct Limits;
template <>
struct Limits<unsigned short> {
  static const int min = 0, max = USHRT_MAX;
};
template <>
struct Limits<short> {
  static constexpr int min = SHRT_MIN, max = SHRT_MAX;
};

template <int N>
struct Binomial {
  static constexpr int radius = N / 2;
  static constexpr float sum = 1 << N;
  __host__ __device__ static constexpr float weight(int k) { return k == 0 || k == N ? 1.0f : Binomial<N - 1>::weight(k - 1) + Binomial<N - 1>::weight(k); }
};
template <>
struct Binomial<0> {
  __host__ __device__ static constexpr float weight(int) { return 1.0f; }
};

template <typename T>
__device__ T saturate_cast(float v) {
  return static_cast<T>(max(Limits<T>::min, min(Limits<T>::max, __float2int_rn(v))));
}

struct Border {
  int last;
  explicit __host__ __device__ Border(int n) : last{n - 1} {}
  __device__ int low(int i) const { return abs(i) % (last + 1); }
  __device__ int high(int i) const { return abs(last - abs(last - i)) % (last + 1); }
  __device__ int operator()(int i) const { return low(high(i)); }
};

static __shared__ float smem[256 + 4];

template <typename T, class Kernel = Binomial<4>>
__global__ void pyrDown(const T *src, int cols, int rows, T *dst, int dst_cols) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const Border across(cols), down(rows);
  const int src_y = 2 * y;
  const auto column = [&](int at) {
    float sum = 0;
#pragma unroll
    for (int k = -Kernel::radius; k <= Kernel::radius; ++k) sum = sum + Kernel::weight(k + Kernel::radius) / Kernel::sum * src[down(src_y + k) * cols + across(at)];
    return sum;
  };
  smem[2 + threadIdx.x] = column(x);
  if (threadIdx.x < 2) smem[threadIdx.x] = column(x - 2);
  if (threadIdx.x > blockDim.x - 3) smem[4 + threadIdx.x] = column(x + 2);
  __syncthreads();
  if (threadIdx.x < blockDim.x / 2) {
    const int tid2 = threadIdx.x * 2, dst_x = (blockIdx.x * blockDim.x + tid2) / 2;
    float sum = 0;
    for (int k = 0; k <= 2 * Kernel::radius; ++k) sum += Kernel::weight(k) / Kernel::sum * smem[tid2 + k];
    if (dst_x < dst_cols) dst[y * dst_cols + dst_x] = saturate_cast<T>(sum);
  }
}

template <typename T>
class Pyramid {
 public:
  Pyramid(int cols, int rows, int levels) {
    for (int i = 0; i < levels; ++i, cols = (cols + 1) / 2, rows = (rows + 1) / 2) {
      T *data = nullptr;
      cudaMalloc(&data, sizeof(T) * cols * rows);
      levels_.push_back({data, cols, rows});
    }
  }
  ~Pyramid() {
    for (auto &level : levels_) cudaFree(level.data);
  }
  Pyramid(const Pyramid &) = delete;
  Pyramid &operator=(const Pyramid &) = delete;
  void build(cudaStream_t stream) {
    for (size_t i = 1; i < levels_.size(); ++i) {
      const Level &from = levels_[i - 1], &to = levels_[i];
      pyrDown<T><<<dim3((from.cols + 255) / 256, to.rows), 256, 0, stream>>>(from.data, from.cols, from.rows, to.data, to.cols);
    }
  }

 private:
  struct Level {
    T *data;
    int cols, rows;
  };
  std::vector<Level> levels_;
};
template class Pyramid<short>;

}  // namespace pyramid
