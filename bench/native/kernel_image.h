// The image of the kernels `empty` and `three` (empty_kernel.cpp) for each device, and what the native benchmarks share
// besides.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace millrace::bench {

using Clock = std::chrono::steady_clock;

inline double Seconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

inline double Quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

inline constexpr char kPtx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry empty() { ret; }\n"
    ".visible .entry three(.param .f32 a, .param .u64 x, .param .u64 y) { ret; }\n";

/// The library of empty_kernel.cpp, which is built into the folder of the running program. A program that was moved to
/// another machine together with the library finds it there.
inline std::string KernelLibrary() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) {
    std::fprintf(stderr, "/proc/self/exe cannot be read.\n");
    std::exit(2);
  }
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/') + 1) + "libempty_kernel.so";
}

/// PTX for a real driver. The fake driver of the tests, which cannot run PTX, takes the library's bytes:
/// MILLRACE_BENCH_ELF=1.
inline std::string CudaImage() {
  if (std::getenv("MILLRACE_BENCH_ELF") == nullptr) return kPtx;
  std::ifstream file(KernelLibrary(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The CPU device takes the library's path.
inline std::string KernelImage(bool is_cpu) {
  return is_cpu ? KernelLibrary() : CudaImage();
}

}  // namespace millrace::bench
