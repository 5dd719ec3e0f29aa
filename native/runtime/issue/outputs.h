// The memory that a record writes. If the record fails, that memory is poisoned.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"

namespace millrace {

struct Outputs {
  std::span<MemoryRef* const> memory = {};
  HostRange staging = {};

  void Poison(uint32_t failure) const {
    for (MemoryRef* const entry : memory) (*entry)->poison.Set(failure);
    staging.Poison(failure);
  }
};

}  // namespace millrace
