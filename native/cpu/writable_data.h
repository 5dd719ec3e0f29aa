// Tells whether a shared object has variables; if so, each load needs its own copy.
#pragma once

#include <string>

namespace millrace::cpu {

/// Also true for a file that cannot be read. Thread-local memory and data that only the loader writes do not count.
[[nodiscard]] bool HasOwnData(const std::string& path);

}  // namespace millrace::cpu
