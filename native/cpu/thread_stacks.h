// The stacks of a block's threads, for kernels whose threads wait (shim/thread_stacks.h).
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace millrace::cpu {

/// Of one thread that runs blocks, in its memory (kernel_memory.h). It keeps them for its next blocks.
class ThreadStacks {
 public:
  /// Since Linux 6.13, a guard is no mapping of its own. The C library's headers may be older.
  static constexpr int kInstallGuard = 102;
  /// `guard_advice`: tells madvise to make a guard. Where the system does not know it, guards are mappings.
  /// `page`: of the system. Larger ones are for tests.
  explicit ThreadStacks(int guard_advice = kInstallGuard, size_t page = SystemPage())
      : guard_advice_(guard_advice), page_(page) {}
  ~ThreadStacks();
  ThreadStacks(const ThreadStacks&) = delete;
  ThreadStacks& operator=(const ThreadStacks&) = delete;

  /// So many stacks are made for a block that needs `count`.
  [[nodiscard]] static uint64_t Rounded(uint32_t count);
  /// Makes at least `count` stacks of `bytes` each accessible, one behind the other from `start`, and returns `start`.
  /// The caller has reserved inaccessible memory for them there, and always gives the same `start`. The lowest whole
  /// page of each stays a guard. Null if the system refuses the memory, or if the stacks made so far have another size.
  [[nodiscard]] std::byte* Take(std::byte* start, uint32_t count, uint64_t bytes);
  /// Whether one of the stacks, or its guard, contains the address. Safe in signal handlers.
  [[nodiscard]] bool Contains(uintptr_t address) const {
    return address - reinterpret_cast<uintptr_t>(first_) < bytes_ * count_;
  }
  /// Of one stack.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  /// Gives back what deep calls have used, if the next stack shows some.
  void Trim();

  [[nodiscard]] static size_t SystemPage() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  /// The first address from there on at which a page begins.
  [[nodiscard]] std::byte* WholePage(std::byte* from) const;

  const int guard_advice_;
  const size_t page_;
  std::byte* first_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t count_ = 0;
  uint64_t looked_at_ = 0;
  uint32_t protected_ = 0;  // Guards that are mappings of their own.
};

}  // namespace millrace::cpu
