// One allocation, as the channel knows it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/hal.h"

namespace millrace {

struct MemoryEntry {
  std::unique_ptr<hal::Memory> memory;  // Null when the allocation failed.
  uint64_t bytes = 0;                   // As asked for.
  /// The id of the failure that spoiled the contents, or 0. Set by the channel, or by the thread that collects a fault.
  std::atomic<uint32_t> spoiled_by{0};
};

}  // namespace millrace
