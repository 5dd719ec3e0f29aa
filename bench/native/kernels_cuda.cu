// What bench/kernels.ts is compared with on a GPU: the same kernels, compiled by nvcc and timed by events. Built by the bench:
//
//   nvcc -O3 -arch=native kernels_cuda.cu
#include <cuda_runtime.h>

#include <utility>

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
  Buffer() = default;
  explicit Buffer(const std::vector<T>& values) : count_(values.size()) {
    Check(cudaMalloc(&address_, count_ * sizeof(T)), "cudaMalloc");
    Check(cudaMemcpy(address_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Buffer() { cudaFree(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(count_, other.count_);
    return *this;
  }

  operator T*() const { return address_; }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    Check(cudaMemcpy(values.data(), address_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }
  void Clear() { Check(cudaMemset(address_, 0, count_ * sizeof(T)), "cudaMemset"); }

 private:
  T* address_ = nullptr;
  size_t count_ = 0;
};

template <class Launch>
double Milliseconds(int launches, Launch launch) {
  static cudaEvent_t start = nullptr;
  static cudaEvent_t end = nullptr;
  if (start == nullptr) {
    Check(cudaEventCreate(&start), "cudaEventCreate");
    Check(cudaEventCreate(&end), "cudaEventCreate");
  }
  // As bench/kernels.ts does.
  if (launches > 1) {
    for (int n = 0; n < launches; ++n) launch();
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

/// One kernel at one size: its data stay between the measurements.
struct Case {
  Buffer<float> x, y;
  Buffer<uint8_t> from, to;
  Buffer<int> steps;
  Buffer<unsigned> bins;
  std::string name;
  int size = 0;

  void Prepare(const std::string& wanted, int count) {
    if (name == wanted && size == count) return;
    *this = Case{};
    name = wanted;
    size = count;
    const size_t n = static_cast<size_t>(count);
    const auto zeros = [](size_t elements) { return Buffer<float>(std::vector<float>(elements)); };
    if (name == "saxpy") x = Buffer<float>(Fractions(n)), y = zeros(n);
    if (name == "nbody") x = Buffer<float>(Fractions(4 * n)), y = zeros(3 * n);
    if (name == "mandelbrot") steps = Buffer<int>(std::vector<int>(n * n));
    if (name == "life") from = Buffer<uint8_t>(Bytes(n * n, 2)), to = Buffer<uint8_t>(std::vector<uint8_t>(n * n));
    if (name == "histogram" || name == "binned") {
      from = Buffer<uint8_t>(Bytes(n, 256));
      bins = Buffer<unsigned>(std::vector<unsigned>(256));
    }
    if (name == "matmul") x = Buffer<float>(Fractions(2 * n * n)), y = zeros(n * n);
    if (name == "reduction") x = Buffer<float>(Fractions(n)), y = zeros(n / 256);
  }
};

/// The sum only when one launch is asked for: reading everything back takes longer than many launches.
template <class T>
double SumOfOne(const Buffer<T>& written, int launches) {
  return launches == 1 ? Sum(written.Read()) : 0;
}

Answer Measure(const std::string& name, int size, int launches) {
  static Case data;
  data.Prepare(name, size);
  auto& [x, y, from, to, steps, bins, _name, _size] = data;
  const size_t n = static_cast<size_t>(size);
  const int blocks = (size + 255) / 256;
  const dim3 square(16, 16);
  const dim3 tiles((size + 15) / 16, (size + 15) / 16);
  const auto timed = [&](auto launch) { return Milliseconds(launches, launch); };
  if (name == "saxpy") {
    y.Clear();
    return {timed([&] { saxpy<<<blocks, 256>>>(0.5f, x, y, size); }), SumOfOne(y, launches)};
  }
  if (name == "nbody") return {timed([&] { nbody<<<blocks, 256>>>(x, y, size); }), SumOfOne(y, launches)};
  if (name == "mandelbrot")
    return {timed([&] { mandelbrot<<<tiles, square>>>(steps, 256, size, size); }), SumOfOne(steps, launches)};
  if (name == "life") return {timed([&] { life<<<tiles, square>>>(from, to, size, size); }), SumOfOne(to, launches)};
  if (name == "histogram" || name == "binned") {
    bins.Clear();
    const bool is_binned = name == "binned";
    const double time = timed([&] {
      if (is_binned) {
        binned<<<size / 16384, 256>>>(from, bins);
      } else {
        histogram<<<blocks, 256>>>(from, bins, size);
      }
    });
    std::vector<unsigned> counted = bins.Read();
    for (unsigned bin = 0; bin < 256; ++bin) counted[bin] *= bin;
    return {time, Sum(counted)};
  }
  if (name == "matmul")
    return {timed([&] { matmul<<<tiles, square>>>(x, x + n * n, y, size); }), SumOfOne(y, launches)};
  if (name == "reduction") return {timed([&] { reduction<<<blocks, 256>>>(x, y); }), SumOfOne(y, launches)};
  std::fprintf(stderr, "There is no kernel %s.\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  Check(cudaSetDevice(argc > 1 ? std::atoi(argv[1]) : 0), "cudaSetDevice");
  return Converse(Measure);
}
