// Partitions of a GPU: green contexts of its primary context, with which they share memory, modules and events.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/context.h"
#include "hal/hal.h"
#include "hal/partitions.h"

namespace millrace::cuda {

struct Partition {
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;  // Of `green`: kernel nodes that are added while it is current run on the share.
  uint32_t multiprocessors = 0;
  uint32_t of = 0;  // All of the device.

  [[nodiscard]] bool exists() const { return green != nullptr; }
  /// kLaunchFailed unless all blocks of a cooperative launch run at a time on the share.
  [[nodiscard]] Status CheckHolds(hal::Kernel& kernel, const hal::Dim3& grid, const hal::Dim3& block,
                                  uint32_t shared_bytes) const;
};

using Partitions = hal::PartitionTable<const Partition>;

/// As hal::Device::Divide. kUnsupported if the driver has no green contexts. With the context current. Thread: control.
[[nodiscard]] Result<hal::Division> DivideGpu(Context& context, std::span<const uint32_t> shares, Partitions& into);

}  // namespace millrace::cuda
