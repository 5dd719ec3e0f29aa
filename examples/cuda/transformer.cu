// One block of a transformer: layer norm, causal attention over several heads, a residual, layer norm, an MLP with
// GELU, a residual.
//
//   nvcc -arch=sm_90 transformer.cu -o transformer && ./transformer
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    const cudaError_t error = (call);                                                     \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(EXIT_FAILURE);                                                            \
    }                                                                                     \
  } while (0)

constexpr int WARP = 32;
constexpr int TILE = 16;
constexpr int HEAD = WARP;  // channels of a head: one for each lane of a warp

struct Sizes {
  int tokens;
  int width;   // channels of a token: HEAD for each head
  int hidden;  // channels inside the MLP
};

__device__ float warp_sum(float value) {
  for (int offset = WARP / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

// One warp for each token.
__global__ void layer_norm(const float* x, const float* gain, float* y, Sizes sizes) {
  const float* in = x + blockIdx.x * sizes.width;
  float sum = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < sizes.width; i += WARP) {
    sum += in[i];
    squares += in[i] * in[i];
  }
  const float mean = warp_sum(sum) / sizes.width;
  const float scale = rsqrtf(warp_sum(squares) / sizes.width - mean * mean + 1e-5f);
  float* out = y + blockIdx.x * sizes.width;
  for (int i = threadIdx.x; i < sizes.width; i += WARP) out[i] = (in[i] - mean) * scale * gain[i];
}

// Epilogues: what is done with an element of a product before it is stored.
struct Store {
  __device__ void operator()(float& to, float value) const { to = value; }
};
struct Add {
  __device__ void operator()(float& to, float value) const { to += value; }
};
struct StoreGelu {
  __device__ void operator()(float& to, float x) const {
    to = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
};

// c[rows][columns] = a[rows][inner] * b[inner][columns], by tiles in shared memory.
template <typename Epilogue>
__device__ void multiply(const float* a, const float* b, float* c, int rows, int inner, int columns,
                         Epilogue epilogue) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int from = 0; from < inner; from += TILE) {
    const int k = from + threadIdx.x;
    const int l = from + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < rows && k < inner ? a[row * inner + k] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = l < inner && column < columns ? b[l * columns + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) epilogue(c[row * columns + column], sum);
}

__global__ void project_qkv(const float* x, const float* weight, float* qkv, Sizes sizes) {
  multiply(x, weight, qkv, sizes.tokens, sizes.width, 3 * sizes.width, Store());
}

__global__ void project_out(const float* attended, const float* weight, float* x, Sizes sizes) {
  multiply(attended, weight, x, sizes.tokens, sizes.width, sizes.width, Add());
}

__global__ void mlp_up(const float* x, const float* weight, float* hidden, Sizes sizes) {
  multiply(x, weight, hidden, sizes.tokens, sizes.width, sizes.hidden, StoreGelu());
}

__global__ void mlp_down(const float* hidden, const float* weight, float* x, Sizes sizes) {
  multiply(hidden, weight, x, sizes.tokens, sizes.hidden, sizes.width, Add());
}

// One warp for each query (x) and head (y). The softmax is computed online: when a key has a larger score than all before
// it, the sums so far are scaled down.
__global__ void causal_attention(const float* qkv, float* attended, Sizes sizes) {
  const int stride = 3 * sizes.width;
  const int channel = blockIdx.y * HEAD + threadIdx.x;
  const float* keys = qkv + sizes.width + channel;
  const float* values = qkv + 2 * sizes.width + channel;
  const float query = qkv[blockIdx.x * stride + channel] * rsqrtf(HEAD);
  float largest = -INFINITY, sum = 0.0f, weighted = 0.0f;
  for (int key = 0; key <= blockIdx.x; key++) {
    const float score = warp_sum(query * keys[key * stride]);
    const float now_largest = fmaxf(largest, score);
    const float kept = expf(largest - now_largest);
    const float weight = expf(score - now_largest);
    sum = sum * kept + weight;
    weighted = weighted * kept + weight * values[key * stride];
    largest = now_largest;
  }
  attended[blockIdx.x * sizes.width + channel] = weighted / sum;
}

using Matrix = std::vector<float>;

static Matrix host_layer_norm(const Matrix& x, int width) {
  Matrix y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double sum = 0, squares = 0;
    for (int i = 0; i < width; i++) sum += x[row + i];
    for (int i = 0; i < width; i++) squares += (x[row + i] - sum / width) * (x[row + i] - sum / width);
    for (int i = 0; i < width; i++) y[row + i] = (x[row + i] - sum / width) / std::sqrt(squares / width + 1e-5);
  }
  return y;
}

static Matrix host_multiply(const Matrix& a, const Matrix& b, int inner) {
  const size_t rows = a.size() / inner, columns = b.size() / inner;
  Matrix c(rows * columns);
  for (size_t i = 0; i < rows; i++)
    for (int k = 0; k < inner; k++)
      for (size_t j = 0; j < columns; j++) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return c;
}

static Matrix host_attention(const Matrix& qkv, int tokens, int width) {
  Matrix attended(tokens * width);
  for (int query = 0; query < tokens; query++) {
    for (int head = 0; head < width; head += HEAD) {
      const float* q = &qkv[query * 3 * width + head];
      double sum = 0;
      std::vector<double> weighted(HEAD);
      for (int key = 0; key <= query; key++) {
        const float* k = &qkv[key * 3 * width + width + head];
        double score = 0;
        for (int i = 0; i < HEAD; i++) score += q[i] * k[i];
        const double weight = std::exp(score / std::sqrt(double(HEAD)));
        for (int i = 0; i < HEAD; i++) weighted[i] += weight * k[width + i];
        sum += weight;
      }
      for (int i = 0; i < HEAD; i++) attended[query * width + head + i] = weighted[i] / sum;
    }
  }
  return attended;
}

static float* empty(size_t count) {
  float* device;
  CHECK(cudaMalloc(&device, count * sizeof(float)));
  return device;
}

static float* on_device(const Matrix& host) {
  float* device = empty(host.size());
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

static dim3 tiles(int rows, int columns) {
  return dim3((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
}

int main() {
  const Sizes sizes = {48, 64, 256};
  const auto [tokens, width, hidden] = sizes;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto numbers = [&](int count, float scale) {
    Matrix made(count);
    for (float& value : made) value = scale * normal(random);
    return made;
  };
  const Matrix input = numbers(tokens * width, 1.0f);
  const Matrix w_qkv = numbers(width * 3 * width, 0.1f), w_out = numbers(width * width, 0.1f);
  const Matrix w_up = numbers(width * hidden, 0.1f), w_down = numbers(hidden * width, 0.1f);

  float *d_x = empty(tokens * width), *d_gain = on_device(Matrix(width, 1.0f)), *d_normed = empty(tokens * width);
  float *d_w_qkv = on_device(w_qkv), *d_w_out = on_device(w_out);
  float *d_w_up = on_device(w_up), *d_w_down = on_device(w_down);
  float *d_qkv = empty(tokens * 3 * width), *d_attended = empty(tokens * width), *d_hidden = empty(tokens * hidden);

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  const int rounds = 100;
  const dim3 tile(TILE, TILE);
  CHECK(cudaEventRecord(start));
  for (int round = 0; round < rounds; round++) {
    CHECK(cudaMemcpyAsync(d_x, input.data(), input.size() * sizeof(float), cudaMemcpyHostToDevice));
    layer_norm<<<tokens, WARP>>>(d_x, d_gain, d_normed, sizes);
    project_qkv<<<tiles(tokens, 3 * width), tile>>>(d_normed, d_w_qkv, d_qkv, sizes);
    causal_attention<<<dim3(tokens, width / HEAD), WARP>>>(d_qkv, d_attended, sizes);
    project_out<<<tiles(tokens, width), tile>>>(d_attended, d_w_out, d_x, sizes);
    layer_norm<<<tokens, WARP>>>(d_x, d_gain, d_normed, sizes);
    mlp_up<<<tiles(tokens, hidden), tile>>>(d_normed, d_w_up, d_hidden, sizes);
    mlp_down<<<tiles(tokens, width), tile>>>(d_hidden, d_w_down, d_x, sizes);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaEventRecord(stop));
  Matrix seen(tokens * width);
  CHECK(cudaMemcpy(seen.data(), d_x, seen.size() * sizeof(float), cudaMemcpyDeviceToHost));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));

  Matrix x = input;
  const auto add = [&](const Matrix& y) {
    for (size_t i = 0; i < x.size(); i++) x[i] += y[i];
  };
  const Matrix qkv = host_multiply(host_layer_norm(x, width), w_qkv, width);
  add(host_multiply(host_attention(qkv, tokens, width), w_out, width));
  Matrix inner = host_multiply(host_layer_norm(x, width), w_up, width);
  for (float& h : inner) h = 0.5f * h * (1.0f + std::tanh(0.7978845608f * (h + 0.044715f * h * h * h)));
  add(host_multiply(inner, w_down, hidden));
  float difference = 0;
  for (size_t i = 0; i < x.size(); i++) difference = std::fmax(difference, std::fabs(x[i] - seen[i]));
  std::printf("%.0f tokens/s: %s\n", 1000.0f * rounds * tokens / ms, difference < 1e-3f ? "as on the host" : "WRONG");

  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  for (float* memory : {d_x, d_gain, d_normed, d_w_qkv, d_w_out, d_w_up, d_w_down, d_qkv, d_attended, d_hidden})
    CHECK(cudaFree(memory));
  return difference < 1e-3f ? EXIT_SUCCESS : EXIT_FAILURE;
}
