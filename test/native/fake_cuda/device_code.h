// The fake driver's kernels: functions in the CPU device's image format. The library's own kernels, which the driver
// receives as PTX, are found by name, compiled from their sources.
#pragma once

#include <cstdlib>
#include <vector>

#include "cpu/shim/launch_abi.h"

namespace millrace::fake_cuda {

/// Memory that a kernel allocated while its entry ran.
class KernelMemory {
 public:
  KernelMemory() = default;
  ~KernelMemory() {
    for (void* chunk : chunks_) std::free(chunk);
  }
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  static void* Take(void* self, unsigned long long bytes) {
    void* const chunk = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    static_cast<KernelMemory*>(self)->chunks_.push_back(chunk);
    return chunk;
  }

 private:
  std::vector<void*> chunks_;
};

struct BuiltIn {
  const char* name;
  MrEntry entry;
  const unsigned* params;  // Their number, then the size of each.
};

/// Sets the condition of a graph's node, as a kernel does.
void SetConditional(unsigned long long handle, unsigned value);

/// Null when the library has no kernel of that name.
const BuiltIn* FindBuiltIn(const char* name);

}  // namespace millrace::fake_cuda
