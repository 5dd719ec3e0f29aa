// Strided copies and fills: what is left of the axes once they are merged, and the kernels that do the rest.
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

/// Our own device code, loaded when a device opens. Its kernels are null on a device too old for the PTX.
struct BuiltIns {
  std::shared_ptr<Kernel> fill64;
  std::shared_ptr<Kernel> copy_narrow;
  std::shared_ptr<Kernel> copy_wide;
  std::shared_ptr<Kernel> fill_narrow;
  std::shared_ptr<Kernel> fill_wide;

  static BuiltIns Load(const std::shared_ptr<Context>& context);
};

/// Merges axes that follow one another in memory, turns those round that run backwards, puts the fastest first, and
/// takes wider elements where a run allows it. `src` is null for a fill, whose pattern is repeated over 8 bytes.
StridedPlan PlanStrided(std::byte* dst, const std::byte* src, uint32_t element_bytes, uint64_t pattern,
                        std::span<const hal::StridedAxis> axes);

/// Whether a plan comes to `count` elements in a row at its addresses.
bool IsRun(const StridedPlan& plan);

/// Queues a plan that is no run. Thread: channel.
Status LaunchStrided(const BuiltIns& kernels, Context& context, CUstream stream, StridedPlan& plan);

}  // namespace millrace::cuda
