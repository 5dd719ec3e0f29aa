// Memory of a thread that runs kernels: variables of images, a stack, and stacks for the threads of a block, each
// between inaccessible pages and with nothing of the host near. A kernel that indexes outside of its shared or local
// arrays reaches other memory of kernels of this thread, or is stopped by a page fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/image_variables.h"
#include "cpu/shim/launch_abi.h"
#include "cpu/thread_stacks.h"

namespace millrace::cpu {

/// For the local variables of kernels (src/toolchain/compilers/stack-usage.ts relies on it).
inline constexpr uint64_t kKernelStackBytes = 8 << 20;

/// Thread: the one that uses it.
class KernelMemory {
 public:
  KernelMemory() = default;
  ~KernelMemory() { Unmap(); }
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  /// Must come first. False if the system refuses; the next call tries again.
  [[nodiscard]] bool Map();
  /// Makes the variables of an image accessible, and initialises them the first time. False if the system refuses.
  [[nodiscard]] bool Prepare(const ImageVariables& variables);
  [[nodiscard]] std::byte* SharedOf(const ImageVariables& variables) const;
  /// At least `count` stacks, whose lowest page is a guard; null if the system refuses.
  [[nodiscard]] std::byte* TakeStacks(uint32_t count, uint64_t bytes);
  [[nodiscard]] const ThreadStacks& stacks() const { return stacks_; }

  /// Calls a kernel on this stack. A wrong index may have changed all that is on it when the kernel returns.
  void Call(MrEntry entry, const MrLaunch& launch, uint64_t first, uint64_t end) const;
  /// A kernel was stopped: the calls on its stacks do not return. The address sanitizer does not see that.
  void ForgetCalls() const;
  [[nodiscard]] std::byte* stack() const { return stack_; }
  [[nodiscard]] bool IsBelowStack(uintptr_t address) const;
  /// With the inaccessible pages.
  [[nodiscard]] bool Contains(uintptr_t address) const;

 private:
  struct Reserved {
    std::byte* start;
    uint64_t bytes;
  };
  static uintptr_t At(const std::byte* address) { return reinterpret_cast<uintptr_t>(address); }
  [[nodiscard]] bool MapWhole();
  /// Where the system limits the address space: without most of the inaccessible pages.
  [[nodiscard]] bool MapParts();
  [[nodiscard]] bool MapPartsAt(std::byte* start);
  void Unmap();
  /// Makes the first `bytes` behind `start` accessible, of which `*present` are.
  [[nodiscard]] bool Grow(std::byte* start, uint64_t bytes, uint64_t most, uint64_t* present);

  std::vector<Reserved> reserved_;
  uint64_t most_variables_ = 0;
  std::byte* own_ = nullptr;    // The shim's variables. The shared ones follow MR_SHARED_OFFSET bytes later.
  std::byte* stack_ = nullptr;  // Its lowest byte.
  ThreadStacks stacks_;
  uint64_t reserved_for_stacks_ = 0;
  uint64_t own_bytes_ = 0;
  uint64_t shared_bytes_ = 0;
  uint64_t used_ = 0;           // The variables below have had values.
  std::vector<bool> prepared_;  // By the number of the image.
};

}  // namespace millrace::cpu
