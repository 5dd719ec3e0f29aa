// Strided copies and fills: merges the axes, and launches kernels for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cuda/context.h"
#include "cuda/kernels/strided_plan.h"
#include "cuda/module.h"
#include "hal/hal.h"

namespace millrace::cuda {

/// The library's own kernels, loaded when a device opens. Null where the driver does not compile their PTX, which is so
/// for a device that is too old for it.
struct BuiltIns {
  std::shared_ptr<Kernel> fill64;
  std::shared_ptr<Kernel> copy_narrow;
  std::shared_ptr<Kernel> copy_wide;
  std::shared_ptr<Kernel> fill_narrow;
  std::shared_ptr<Kernel> fill_wide;

  static Result<BuiltIns> Load(const std::shared_ptr<Context>& context);
};

/// Merges contiguous axes, reverses those with a negative destination stride, puts the fastest first, and widens
/// elements where a contiguous run allows it. `src` is null for a fill, whose pattern is repeated over 8 bytes.
StridedPlan PlanStrided(std::byte* dst, const std::byte* src, uint32_t element_bytes, uint64_t pattern,
                        std::span<const hal::StridedAxis> axes);

/// Whether a plan is `count` contiguous elements at its addresses.
bool IsRun(const StridedPlan& plan);

/// The shape of a launch of a built-in kernel, whose parameters the caller has: those of a fill with 8-byte elements,
/// or a plan. `kernel` is null on a device too old for it.
struct BuiltInLaunch {
  Kernel* kernel;
  unsigned int blocks;
  unsigned int block;
};
[[nodiscard]] BuiltInLaunch Fill64Launch(const BuiltIns& kernels, uint64_t count);
[[nodiscard]] BuiltInLaunch StridedLaunch(const BuiltIns& kernels, const StridedPlan& plan);

inline constexpr Status kNoFill64{StatusCode::kUnsupported,
                                  "filling with 8-byte elements on a device older than compute capability 7.5"};
inline constexpr Status kNoStrided{StatusCode::kUnsupported,
                                   "strided copies and fills on a device older than compute capability 7.5"};

/// Queues a plan that is not contiguous. Thread: channel.
Status LaunchStrided(const BuiltIns& kernels, Context& context, CUstream stream, StridedPlan& plan);

}  // namespace millrace::cuda
