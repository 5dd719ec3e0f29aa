// Partitions of a GPU: green contexts of its primary context, with which they share memory, modules and events.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/context.h"
#include "hal/partitions.h"

namespace millrace::cuda {

struct Partition {
  CUgreenCtx green = nullptr;
  uint32_t multiprocessors = 0;
};

using Partitions = hal::PartitionTable<const Partition>;

/// As hal::Device::Divide. kUnsupported if the driver has no green contexts. With the context current. Thread: control.
[[nodiscard]] Result<hal::Division> DivideGpu(Context& context, std::span<const uint32_t> shares, Partitions& into);

}  // namespace millrace::cuda
