// Properties of this machine, as the operating system reports them.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::cpu {

/// The processor's model name, or "CPU" when the system does not report it.
[[nodiscard]] std::string ModelName();

/// Memory that this process may use: the machine's, or a lower limit of its control groups.
struct HostMemory {
  uint64_t total = 0;
  /// What could be allocated now without swapping, and without exceeding such a limit.
  uint64_t available = 0;
};
[[nodiscard]] HostMemory MemoryOfHost();

}  // namespace millrace::cpu
