// What a record writes. If it does not run, that is spoiled.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"

namespace millrace {

struct Outputs {
  std::span<MemoryRef* const> memory = {};
  HostRange staging = {};

  void Spoil(uint32_t failure) const {
    for (MemoryRef* const entry : memory) (*entry)->spoil.Set(failure);
    staging.Spoil(failure);
  }
};

}  // namespace millrace
