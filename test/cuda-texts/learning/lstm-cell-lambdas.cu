// One step of an LSTM: gates by lambdas, loops over ranges, and structured bindings.
#include <cuda_runtime.h>
#include <chrono>
#include <cstdio>
#include <numeric>

enum Gate { INPUT, FORGET, CELL, OUTPUT, GATES };

template <typename F>
__device__ __forceinline__ void block_stride(int n, F &&body) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) body(i);
}

template <int N>
struct Gates {
  float values[N];
  __device__ float *begin() { return values; }
  __device__ float *end() { return values + N; }
  __device__ constexpr float operator[](int i) const { return values[i]; }
};
struct Step {
  float c, h;
};

__device__ Step finish(const Gates<GATES> &gates, float before) {
  constexpr auto sigmoid = [](auto x) -> decltype(x) { return 1 / (1 + expf(-x)); };
  const auto c = sigmoid(gates[FORGET]) * before + sigmoid(gates[INPUT]) * tanhf(gates[CELL]);
  return {c, sigmoid(gates[OUTPUT]) * tanhf(c)};
}

// A block for each sequence. Weights are [GATES * hidden][inputs + hidden].
__global__ void lstm_cell(const float *__restrict__ x, float *__restrict__ h, float *__restrict__ c, const float *__restrict__ weights,
                          const float *__restrict__ bias, int inputs, int hidden) {
  extern __shared__ float row[];
  float *const gates = row + inputs + hidden;
  const auto at = [=, base = blockIdx.x * hidden](int j) { return base + j; };
  block_stride(inputs + hidden, [&](int i) { row[i] = i < inputs ? x[blockIdx.x * inputs + i] : h[at(i - inputs)]; });
  __syncthreads();
  block_stride(GATES * hidden, [&](int g) {
    float sum = bias[g];
    const float *w = weights + g * (inputs + hidden);
#pragma unroll 4
    for (int i = 0; i < inputs + hidden; i++) sum += w[i] * row[i];
    gates[g] = sum;
  });
  __syncthreads();
  block_stride(hidden, [&, hidden](int j) mutable {
    Gates<GATES> mine{};
    int g = 0;
    for (float &value : mine) value = gates[g++ * hidden + j];
    const auto [next, out] = finish(mine, c[at(j)]);
    c[at(j)] = next;
    h[at(j)] = out;
  });
}

int main() {
  const int batch = 8, inputs = 20, hidden = 48;
  float *buffers[5];
  const size_t sizes[] = {size_t(batch * inputs), size_t(batch * hidden), size_t(batch * hidden), size_t(GATES * hidden * (inputs + hidden)), size_t(GATES * hidden)};
  for (int i = 0; i < 5; i++) cudaMalloc(buffers + i, sizes[i] * sizeof(float));
  auto [x, h, c, w, b] = buffers;
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < 100; step++)
    lstm_cell<<<batch, 64, (inputs + hidden * (1 + GATES)) * sizeof(float)>>>(x, h, c, w, b, inputs, hidden);
  cudaDeviceSynchronize();
  std::printf("%f s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}
