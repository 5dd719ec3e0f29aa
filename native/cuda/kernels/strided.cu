// Copies and fills along up to eight axes; each thread handles one element at a time. The host has merged the axes, sorted
// them and widened the elements (cuda/strided.cpp), so that adjacent threads write adjacent bytes where possible.
// The narrow kernels take fewer than 2^31 elements and divide by multiplication; the wide kernels take any number.
// After a change run `node native/cuda/kernels/generate.mjs`: the library loads the PTX that it generates.
#include "cuda/kernels/strided_plan.h"

#if defined(__CUDACC__)
#define MR_UNROLL _Pragma("unroll")
#else
#define MR_UNROLL
#endif

namespace {

using millrace::cuda::kStridedAxes;
using millrace::cuda::StridedPlan;

struct alignas(16) Sixteen {
  unsigned long long low;
  unsigned long long high;
};

template <typename T>
__device__ void CopyOne(unsigned long long dst, unsigned long long src) {
  *reinterpret_cast<T*>(dst) = *reinterpret_cast<const T*>(src);
}

template <typename T>
__device__ void FillOne(unsigned long long dst, unsigned long long pattern) {
  *reinterpret_cast<T*>(dst) = static_cast<T>(pattern);
}

template <bool kIsCopy>
__device__ void Write(const StridedPlan& plan, long long dst_offset, long long src_offset) {
  const unsigned long long dst = plan.dst + dst_offset;
  const unsigned long long src = plan.src + src_offset;
  switch (plan.element_bytes) {
    case 1:
      return kIsCopy ? CopyOne<unsigned char>(dst, src) : FillOne<unsigned char>(dst, plan.pattern);
    case 2:
      return kIsCopy ? CopyOne<unsigned short>(dst, src) : FillOne<unsigned short>(dst, plan.pattern);
    case 4:
      return kIsCopy ? CopyOne<unsigned>(dst, src) : FillOne<unsigned>(dst, plan.pattern);
    case 8:
      return kIsCopy ? CopyOne<unsigned long long>(dst, src) : FillOne<unsigned long long>(dst, plan.pattern);
    default:
      if (kIsCopy) CopyOne<Sixteen>(dst, src);
  }
}

template <bool kIsCopy>
__device__ void Narrow(const StridedPlan& plan) {
  const unsigned count = static_cast<unsigned>(plan.count);
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned element = blockIdx.x * blockDim.x + threadIdx.x; element < count; element += step) {
    unsigned rest = element;
    long long dst = 0;
    long long src = 0;
    // Unroll, so that the plan is read directly from constant memory.
    MR_UNROLL
    for (unsigned axis = 0; axis < kStridedAxes; ++axis) {
      if (axis < plan.rank) {
        const unsigned quotient = (__umulhi(rest, plan.factors[axis]) + rest) >> plan.shifts[axis];
        const long long index = rest - quotient * static_cast<unsigned>(plan.extents[axis]);
        dst += index * plan.dst_strides[axis];
        if (kIsCopy) src += index * plan.src_strides[axis];
        rest = quotient;
      }
    }
    Write<kIsCopy>(plan, dst, src);
  }
}

template <bool kIsCopy>
__device__ void Wide(const StridedPlan& plan) {
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long element = 1ull * blockIdx.x * blockDim.x + threadIdx.x; element < plan.count;
       element += step) {
    unsigned long long rest = element;
    long long dst = 0;
    long long src = 0;
    MR_UNROLL
    for (unsigned axis = 0; axis < kStridedAxes; ++axis) {
      if (axis < plan.rank) {
        const unsigned long long quotient = rest / plan.extents[axis];
        const long long index = static_cast<long long>(rest - quotient * plan.extents[axis]);
        dst += index * plan.dst_strides[axis];
        if (kIsCopy) src += index * plan.src_strides[axis];
        rest = quotient;
      }
    }
    Write<kIsCopy>(plan, dst, src);
  }
}

}  // namespace

extern "C" __global__ void millrace_copy_narrow(const __grid_constant__ StridedPlan plan) { Narrow<true>(plan); }
extern "C" __global__ void millrace_copy_wide(const __grid_constant__ StridedPlan plan) { Wide<true>(plan); }
extern "C" __global__ void millrace_fill_narrow(const __grid_constant__ StridedPlan plan) { Narrow<false>(plan); }
extern "C" __global__ void millrace_fill_wide(const __grid_constant__ StridedPlan plan) { Wide<false>(plan); }
