// What bench/kernels.ts is held against on a GPU: the same kernels, compiled by nvcc and timed by events. Built by the bench:
//
//   nvcc -O3 -arch=native kernels_cuda.cu
#include <cuda_runtime.h>

#include "kernels.cuh"
#include "kernels_common.h"

namespace {

void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s.\n", what, cudaGetErrorString(code));
  std::exit(2);
}

template <class T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values) : count_(values.size()) {
    Check(cudaMalloc(&address_, count_ * sizeof(T)), "cudaMalloc");
    Check(cudaMemcpy(address_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  explicit Buffer(size_t count) : Buffer(std::vector<T>(count)) {}
  ~Buffer() { cudaFree(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  operator T*() const { return address_; }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    Check(cudaMemcpy(values.data(), address_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  T* address_ = nullptr;
  size_t count_;
};

template <class Launch>
double Milliseconds(int launches, Launch launch) {
  static cudaEvent_t start = nullptr;
  static cudaEvent_t end = nullptr;
  if (start == nullptr) {
    Check(cudaEventCreate(&start), "cudaEventCreate");
    Check(cudaEventCreate(&end), "cudaEventCreate");
  }
  Check(cudaEventRecord(start), "cudaEventRecord");
  for (int n = 0; n < launches; ++n) launch();
  Check(cudaGetLastError(), "A launch");
  Check(cudaEventRecord(end), "cudaEventRecord");
  Check(cudaEventSynchronize(end), "cudaEventSynchronize");
  float elapsed = 0;
  Check(cudaEventElapsedTime(&elapsed, start, end), "cudaEventElapsedTime");
  return elapsed / launches;
}

Answer Measure(const std::string& name, int size, int launches) {
  const size_t n = static_cast<size_t>(size);
  const int blocks = (size + 255) / 256;
  const dim3 square(16, 16);
  const dim3 tiles((size + 15) / 16, (size + 15) / 16);
  if (name == "saxpy") {
    const Buffer<float> x(Fractions(n)), y(n);
    return {Milliseconds(launches, [&] { saxpy<<<blocks, 256>>>(0.5f, x, y, size); }), Sum(y.Read())};
  }
  if (name == "nbody") {
    const Buffer<float> bodies(Fractions(4 * n)), pull(3 * n);
    return {Milliseconds(launches, [&] { nbody<<<blocks, 256>>>(bodies, pull, size); }), Sum(pull.Read())};
  }
  if (name == "mandelbrot") {
    const Buffer<int> steps(n * n);
    return {Milliseconds(launches, [&] { mandelbrot<<<tiles, square>>>(steps, 256, size, size); }), Sum(steps.Read())};
  }
  if (name == "life") {
    const Buffer<uint8_t> from(Bytes(n * n, 2)), to(n * n);
    return {Milliseconds(launches, [&] { life<<<tiles, square>>>(from, to, size, size); }), Sum(to.Read())};
  }
  if (name == "histogram" || name == "binned") {
    const Buffer<uint8_t> data(Bytes(n, 256));
    const Buffer<unsigned> bins(256);
    const bool is_binned = name == "binned";
    const double time = Milliseconds(launches, [&] {
      if (is_binned) {
        binned<<<size / 16384, 256>>>(data, bins);
      } else {
        histogram<<<blocks, 256>>>(data, bins, size);
      }
    });
    std::vector<unsigned> counted = bins.Read();
    for (unsigned bin = 0; bin < 256; ++bin) counted[bin] *= bin;
    return {time, Sum(counted)};
  }
  if (name == "matmul") {
    const std::vector<float> values = Fractions(2 * n * n);
    const Buffer<float> factors(values), product(n * n);
    return {Milliseconds(launches, [&] { matmul<<<tiles, square>>>(factors, factors + n * n, product, size); }), Sum(product.Read())};
  }
  if (name == "reduction") {
    const Buffer<float> x(Fractions(n)), sums(n / 256);
    return {Milliseconds(launches, [&] { reduction<<<blocks, 256>>>(x, sums); }), Sum(sums.Read())};
  }
  std::fprintf(stderr, "There is no kernel %s.\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  Check(cudaSetDevice(argc > 1 ? std::atoi(argv[1]) : 0), "cudaSetDevice");
  return Converse(Measure);
}
