// The image of the kernels `empty`, `three`, `increment` and `spin` (empty_kernel.cpp) for each device, and what the
// native benchmarks share besides.
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

inline constexpr char kPtx[] = R"(.version 6.0
.target sm_52
.address_size 64
.visible .entry empty() { ret; }
.visible .entry three(.param .f32 a, .param .u64 x, .param .u64 y) { ret; }
.visible .entry increment(.param .u64 x, .param .u32 length) {
  .reg .pred %outside;
  .reg .b32 %i, %block, %size, %thread, %length;
  .reg .f32 %value;
  .reg .b64 %x, %offset;
  ld.param.u64 %x, [x];
  ld.param.u32 %length, [length];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %i, %block, %size, %thread;
  setp.ge.s32 %outside, %i, %length;
  @%outside bra DONE;
  cvta.to.global.u64 %x, %x;
  mul.wide.s32 %offset, %i, 4;
  add.s64 %x, %x, %offset;
  ld.global.f32 %value, [%x];
  add.f32 %value, %value, 0f3F800000;
  st.global.f32 [%x], %value;
DONE:
  ret;
}
.visible .entry spin(.param .u64 x, .param .u32 steps) {
  .reg .pred %over;
  .reg .b32 %n, %steps;
  .reg .f32 %value;
  .reg .b64 %x;
  ld.param.u64 %x, [x];
  ld.param.u32 %steps, [steps];
  cvta.to.global.u64 %x, %x;
  mov.f32 %value, 0f00000000;
  mov.u32 %n, 0;
NEXT:
  setp.ge.s32 %over, %n, %steps;
  @%over bra DONE;
  fma.rn.f32 %value, %value, 0f3F000000, 0f3F800000;
  add.s32 %n, %n, 1;
  bra NEXT;
DONE:
  st.global.f32 [%x], %value;
  ret;
}
)";

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
