// assert() of a CUDA text: the first that fails describes itself in the launch's fault slot, as a TypeScript kernel's
// does, and its thread ends there. The other threads go on, and barriers do not wait for it.
//
// A thread may be deep in device functions, so it ends by a jump back to whoever began it, or went on with it. Nothing
// in between has anything to tidy up: exceptions are off, and what a text owns it owns by value.
#pragma once

#include "index.h"

struct MrFaultSlot;
/// The launch's, for the blocks that this thread of the pool runs.
static thread_local MrFaultSlot* mr_fault;
static thread_local unsigned* mr_fault_word;
static thread_local void* mr_place_to_leave[5];

/// The layout is the protocol's FaultSlot.
struct MrFaultSlot {
  unsigned state, parameter, dimension, limit;
  long long index;
  unsigned block_x, block_y, block_z, thread_x, thread_y, thread_z;
  unsigned long long reserved0, reserved1;
};

/// `line` stands where other reports have an index. All ones in place of a parameter: an assertion.
[[noreturn]] __attribute__((noinline, cold)) static void mr_assertion_failed(int line, uint3 block, uint3 thread) {
  unsigned free = 0;
  if (__atomic_compare_exchange_n(&mr_fault->state, &free, 1u, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    mr_fault->parameter = 0xffffffffu;
    mr_fault->dimension = mr_fault->limit = 0;
    mr_fault->index = line;
    mr_fault->block_x = block.x, mr_fault->block_y = block.y, mr_fault->block_z = block.z;
    mr_fault->thread_x = thread.x, mr_fault->thread_y = thread.y, mr_fault->thread_z = thread.z;
    __atomic_store_n(&mr_fault->state, 2u, __ATOMIC_RELEASE);
    __atomic_store_n(mr_fault_word, 1u, __ATOMIC_RELEASE);
  }
  __builtin_longjmp(mr_place_to_leave, 1);
}
/// Behind the call that the jump may leave: clang would make it the last thing that its function does, and take down
/// the frame to jump back to.
static MR_INLINE void mr_keep_frame() {
  asm volatile("");
}
/// A function of its own: it must not be the one that jumps.
template <auto Kernel, class... Args>
static __attribute__((noinline)) void mr_run_thread(Args... args) {
  if (__builtin_setjmp(mr_place_to_leave) == 0) {
    Kernel(args...);
    mr_keep_frame();
  }
}
