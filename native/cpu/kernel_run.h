// One call of an image's entry, which its thread leaves where the kernel cannot go on.
//
// Users write kernels, so a kernel may overflow its stack, use a wild pointer or reach a trap. The processor then
// raises a signal on the thread that runs it. A handler of the process, installed when the first kernel runs, jumps out
// of the kernel if the thread is inside a call here, and otherwise passes the signal on to the handler that was there
// before. An integer division by zero goes on after its instruction with all bits set, as on a GPU (division.h).
//
// A kernel holds no lock while it runs, so nothing stays locked when it is left: where it calls the runtime, a
// KernelPause says so, and a signal there is the runtime's own and is passed on. What the kernel took of memory belongs
// to the KernelRun. docs/decisions/0023-kernels-that-cannot-go-on.md says more.
#pragma once

#include <setjmp.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernel_fault.h"
#include "cpu/module.h"

namespace millrace::cpu {

/// Thread: any; one call at a time on each.
class KernelRun {
 public:
  /// `most_bytes`: what TakeMemory gives at most.
  explicit KernelRun(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  /// Runs the blocks [first, end). `launch.run` is this.
  [[nodiscard]] KernelExit Call(EntryFunction entry, const CpuLaunch& launch, uint64_t first, uint64_t end);

  /// For `CpuLaunch::take_memory`: memory until the run ends, on a cache line. Where there is none, the kernel is left.
  static void* TakeMemory(void* run, unsigned long long bytes);

 private:
  friend class KernelPause;
  friend class KernelThread;
  struct Chunk {
    Chunk* next;
    uint64_t bytes;
  };

  [[noreturn]] void Leave(KernelFault fault, uint64_t detail);

  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  Chunk* chunks_ = nullptr;
  KernelExit exit_;
  volatile bool is_paused_ = false;
  sigjmp_buf place_;
};

/// While a kernel's thread runs code of the runtime that the kernel called.
class KernelPause {
 public:
  KernelPause();
  ~KernelPause();
  KernelPause(const KernelPause&) = delete;
  KernelPause& operator=(const KernelPause&) = delete;

 private:
  KernelRun* const run_;
};

}  // namespace millrace::cpu
