// Whether a shared object has variables: then each load of it needs a copy of its own.
#pragma once

#include <string>

namespace millrace::cpu {

/// True also of what cannot be read. Memory of threads is no variable here, nor is what only the loader writes.
[[nodiscard]] bool HasOwnData(const std::string& path);

}  // namespace millrace::cpu
