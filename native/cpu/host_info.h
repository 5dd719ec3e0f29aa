// What the operating system says about this machine.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::cpu {

/// The processor's own name, or "CPU" where the system does not tell.
[[nodiscard]] std::string ModelName();

/// Memory this process may use: the machine's, or the limit of its control group when that is lower.
[[nodiscard]] uint64_t MemoryBytes();

}  // namespace millrace::cpu
