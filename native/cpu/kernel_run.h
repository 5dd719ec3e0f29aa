// A call of an image's entry point, which the thread can abort.
//
// Users write kernels, so a kernel may overflow its stack, use a wild pointer or reach a trap. The processor then
// raises a signal on the thread that runs it. The process's handler, installed at the first kernel, jumps out of the
// kernel if the thread is inside a call here, and otherwise calls the handler that was installed before. An integer
// division by zero continues with all bits set, as on a GPU (division.h).
//
// A running kernel holds no lock, so aborting it leaves nothing locked. When it calls the runtime, a KernelPause marks
// that: a signal there comes from the runtime, and the earlier handler gets it. A kernel has a stack of its own
// (kernel_memory.h), so that an index outside of a local array does not reach the frames of the runtime.
// See docs/decisions/0023-kernels-that-cannot-go-on.md.
#pragma once

#include <setjmp.h>

#include <cstddef>
#include <cstdint>

#include "cpu/image_variables.h"
#include "cpu/kernel_fault.h"
#include "cpu/module.h"

namespace millrace::cpu {

class KernelMemory;

/// Thread: any; one call at a time on each.
class KernelRun {
 public:
  /// `variables`: the image's; null if it has none.
  explicit KernelRun(const ImageVariables* variables) : variables_(variables) {}
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  /// Runs the blocks [first, end). `launch.run` is this object.
  [[nodiscard]] KernelExit Call(MrEntry entry, const MrLaunch& launch, uint64_t first, uint64_t end);

  /// For `MrLaunch::take_stacks`. Aborts the kernel if there is no memory.
  static char* TakeStacks(void* run, unsigned count, unsigned long long bytes);
  /// For `MrLaunch::spin`: aborts a kernel whose thread has waited in a loop for kSpinLimit.
  static void Spin(void* run, unsigned long long* since);
  /// For `MrLaunch::find_spaces` and `is_on_stacks`.
  static void FindSpaces(void* run, MrSpaces* found);
  static bool IsOnStacks(void* run, const void* address);
  /// For `MrLaunch::fail_shuffle`: aborts the kernel.
  static void FailShuffle(void* run, const MrShuffle* shuffle);

 private:
  friend class KernelPause;
  friend class RaceDetector;
  friend class KernelThread;
  [[noreturn]] void Leave(KernelFault fault, uint64_t detail, const MrShuffle& shuffle = {});

  const ImageVariables* const variables_;
  KernelMemory* memory_ = nullptr;  // The thread's, from Call on.
  KernelExit exit_;
  volatile bool is_paused_ = false;
  sigjmp_buf place_;
};

/// Marks that a kernel's thread runs code of the runtime.
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
