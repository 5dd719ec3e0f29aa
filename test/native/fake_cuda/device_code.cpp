#include "device_code.h"

#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

// The part of CUDA C++ that the kernels of native/cuda/kernels use.
#define __global__
#define __device__
#define __grid_constant__

namespace {

struct Index {
  unsigned x;
};
thread_local Index threadIdx;
thread_local Index blockIdx;
thread_local Index blockDim;
thread_local Index gridDim;

unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((1ull * a * b) >> 32);
}

}  // namespace

// Of the device runtime.
static void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  millrace::fake_cuda::SetConditional(handle, value);
}

#include "cuda/kernels/condition.cu"
#include "cuda/kernels/fill64.cu"
#include "cuda/kernels/strided.cu"

namespace millrace::fake_cuda {

namespace {

template <typename Body>
void ForEachThread(const MrLaunch& launch, const Body& body) {
  gridDim.x = launch.grid[0];
  blockDim.x = launch.block[0];
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) body();
  }
}

template <auto Kernel, typename... Params>
struct Runner {
  static constexpr unsigned kSizes[] = {sizeof...(Params), sizeof(Params)...};

  static void Run(const MrLaunch* launch, unsigned long long, unsigned long long) {
    RunWith(*launch, std::index_sequence_for<Params...>());
  }

 private:
  template <size_t... Is>
  static void RunWith(const MrLaunch& launch, std::index_sequence<Is...>) {
    const std::tuple<Params...> values{*static_cast<const Params*>(launch.params[Is])...};
    ForEachThread(launch, [&] { std::apply(Kernel, values); });
  }
};

using Word = unsigned long long;
using Fill64 = Runner<&millrace_fill64, Word*, Word, Word>;
using CopyNarrow = Runner<&millrace_copy_narrow, cuda::StridedPlan>;
using CopyWide = Runner<&millrace_copy_wide, cuda::StridedPlan>;
using FillNarrow = Runner<&millrace_fill_narrow, cuda::StridedPlan>;
using FillWide = Runner<&millrace_fill_wide, cuda::StridedPlan>;

using Condition = Runner<&millrace_condition, Word, const int*, int, int, const volatile unsigned*>;

constexpr BuiltIn kBuiltIns[] = {
    {"millrace_condition", &Condition::Run, Condition::kSizes},
    {"millrace_fill64", &Fill64::Run, Fill64::kSizes},
    {"millrace_copy_narrow", &CopyNarrow::Run, CopyNarrow::kSizes},
    {"millrace_copy_wide", &CopyWide::Run, CopyWide::kSizes},
    {"millrace_fill_narrow", &FillNarrow::Run, FillNarrow::kSizes},
    {"millrace_fill_wide", &FillWide::Run, FillWide::kSizes},
};

}  // namespace

const BuiltIn* FindBuiltIn(const char* name) {
  for (const BuiltIn& built_in : kBuiltIns) {
    if (std::strcmp(built_in.name, name) == 0) return &built_in;
  }
  return nullptr;
}

}  // namespace millrace::fake_cuda
