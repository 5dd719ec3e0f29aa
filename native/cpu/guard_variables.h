// Finds the guard variables (`_ZGV...`) of an image. In them, the code that a compiler emits for a variable of thread
// storage duration remembers that it has initialised the variable. Their ranges are needed when an image is loaded.
// The names of an image's variables are read in TypeScript (src/toolchain/base/elf-symbols.ts), for messages alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::cpu {

/// Bytes from the start of an image's thread-local storage.
struct ThreadRange {
  uint64_t from = 0;
  uint64_t end = 0;
};

/// Those of a shared object that has its symbols; none for a file that cannot be read.
[[nodiscard]] std::vector<ThreadRange> GuardVariables(const std::string& path);

}  // namespace millrace::cpu
