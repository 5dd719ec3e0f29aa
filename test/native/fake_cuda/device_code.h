// The fake driver's kernels: functions in the CPU device's image format. The library's own kernels, which the driver
// receives as PTX, are found by name, compiled from their sources.
#pragma once

#include <cstdlib>
#include <vector>

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

struct CpuLaunch {
  void* const* params;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  char* dynamic_shared;
  void (*wait_for_grid)(void* grid_barrier);
  void* grid_barrier;
  /// Of images whose kernels launch kernels: a millrace::cpu::CpuLauncher.
  void* launcher;
  void* (*take_memory)(void* run, unsigned long long bytes) = &KernelMemory::Take;
  void* run = nullptr;  // A KernelMemory.
  mutable volatile unsigned long long block_now = 0;
  mutable volatile unsigned long long blocks_now = 1;
  /// Only for destroyed CPU devices; null here.
  const unsigned long long* last_kept = nullptr;
  unsigned long long ticket = 0;
};
using Entry = void (*)(const CpuLaunch*, unsigned long long first_block, unsigned long long end_block);

struct BuiltIn {
  const char* name;
  Entry entry;
  const unsigned* params;  // Their number, then the size of each.
};

/// Null when the library has no kernel of that name.
const BuiltIn* FindBuiltIn(const char* name);

}  // namespace millrace::fake_cuda
