// The memory that a record writes. If the record fails, that memory is poisoned.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/in_flight.h"

namespace millrace {

struct Outputs {
  // Those of them that are written count.
  std::span<const MemoryUse> memory = {};
  std::span<const HostUse> host = {};
};

}  // namespace millrace
