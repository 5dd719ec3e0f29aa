// Rotary position embedding in two layouts, which a scoped enum selects at compile time.
#include <cuda_runtime.h>
#include <cmath>
#include <stdexcept>

namespace llm {
namespace rope {

enum class Layout : unsigned char { Interleaved = 0, Halves };

struct Config {
  int heads, head_dim;
  float theta, scale;
  __host__ __device__ constexpr int pairs() const noexcept { return head_dim / 2; }
};

constexpr int divUp(int a, int b) { return (a + b - 1) / b; }

static __device__ __forceinline__ float2 rotate(const float2 v, const float angle) {
  float s, c;
  sincosf(angle, &s, &c);
  return make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

template <Layout layout, bool inverse = false>
__global__ void apply(float *__restrict__ x, const int *__restrict__ positions, const Config config, const int tokens) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y, token = blockIdx.z;
  if (pair >= config.pairs()) return;
  float *row = x + (static_cast<size_t>(token) * config.heads + head) * config.head_dim;
  const float frequency = powf(config.theta, -2.0f * pair / config.head_dim);
  const float angle = (inverse ? -1.0f : 1.0f) * positions[token] * frequency * config.scale;
  if constexpr (layout == Layout::Interleaved) {
    float2 *const at = reinterpret_cast<float2 *>(row) + pair;
    *at = rotate(*at, angle);
  } else {
    const float2 turned = rotate({row[pair], row[pair + config.pairs()]}, angle);
    row[pair] = turned.x;
    row[pair + config.pairs()] = turned.y;
  }
}

}  // namespace rope

class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(rope::Config config) : config_(config) {
    if (config.head_dim % 2 != 0) throw std::invalid_argument("head_dim must be even");
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  ~RotaryEmbedding() { cudaStreamDestroy(stream_); }
  void forward(float *x, const int *positions, int tokens, rope::Layout layout) {
    const dim3 block(32);
    const dim3 grid(rope::divUp(config_.pairs(), block.x), config_.heads, tokens);
    if (layout == rope::Layout::Interleaved)
      rope::apply<rope::Layout::Interleaved><<<grid, block, 0, stream_>>>(x, positions, config_, tokens);
    else
      rope::apply<rope::Layout::Halves><<<grid, block, 0, stream_>>>(x, positions, config_, tokens);
  }

 private:
  rope::Config config_;
  cudaStream_t stream_;
};

}  // namespace llm
