// Loops in which a thread waits for another thread of its launch. The builder adds these calls
// (src/cuda-cpp/lower/spin-loops.ts):
//   for (mr_spin mr_spins_here; mr_spins_here.once();) while ((...) && mr_spins_here.again()) ...;
#pragma once

#include "kernel_exports.h"

/// Images with such loops have this symbol: the blocks of their launches have a thread each, as far as there are
/// threads.
extern "C" __attribute__((visibility("default"), used)) const unsigned mr_spins = 1;

static __attribute__((noinline)) void mr_note_spin(unsigned long long* since) {
  // Who runs the blocks of a GPU, as the driver for tests does, lets them wait for ever.
  if (mr_launch_of_block->spin == nullptr) return;
  mr_need_stack();
  mr_launch_of_block->spin(mr_launch_of_block->run, since);
}

/// One run of a loop.
class mr_spin {
 public:
  MR_INLINE bool once() {
    const bool is_first = is_first_;
    is_first_ = false;
    return is_first;
  }
  /// True. Does not return when the loop has run for too long.
  MR_INLINE bool again() {
    // Long enough that the call costs nothing, short enough that another thread soon gets the core.
    if (++turns_ % 256 == 0) mr_note_spin(&since_);
    return true;
  }

 private:
  bool is_first_ = true;
  unsigned turns_ = 0;
  unsigned long long since_ = 0;  // Nanoseconds; 0 before the first call.
};
