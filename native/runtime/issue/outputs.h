// The memory that a record writes. If the record fails, that memory is poisoned.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/in_flight.h"

namespace millrace {

struct Outputs {
  std::span<MemoryRef* const> memory = {};
  std::span<const HostUse> host = {};  // Those of them that are written count.
};

}  // namespace millrace
