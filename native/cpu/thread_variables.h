// Finds the thread-local storage of a loaded image: its `__shared__` variables, and some of the shim.
#pragma once

#include <cstdint>

namespace millrace::cpu {

struct ThreadVariables {
  const char* address = nullptr;
  uint64_t bytes = 0;
};

/// Of the calling thread, which must have accessed one of them. `of`: any address in the image. Empty if there are
/// none.
[[nodiscard]] ThreadVariables FindThreadVariables(const void* of);

}  // namespace millrace::cpu
