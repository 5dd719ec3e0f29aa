// assert() in CUDA C++ source: the first failed assertion describes itself in the launch's fault slot, as in a
// TypeScript kernel, and its thread ends. The other threads continue, and barriers do not wait for it.
//
// A thread may be deep in device functions, so it ends by a longjmp to the code that called the kernel, or by leaving
// its stack (thread_stacks.h). No frame in between needs cleanup: exceptions are disabled, and device code holds its
// data by value.
#pragma once

#include "thread_index.h"

/// Layout of the protocol's FaultSlot. Emitted source declares it itself (src/compiler/emission/prelude.ts).
struct MrFaultSlot {
  unsigned state, parameter, dimension, limit;
  long long index;
  unsigned block_x, block_y, block_z, thread_x, thread_y, thread_z;
  unsigned long long reserved0, reserved1;
};
static_assert(sizeof(MrFaultSlot) == 64, "");
static_assert(__builtin_offsetof(MrFaultSlot, index) == 16, "");
static_assert(__builtin_offsetof(MrFaultSlot, block_x) == 24, "");
static_assert(__builtin_offsetof(MrFaultSlot, thread_z) == 44, "");

/// The launch's fault slot and word, for the blocks that this pool thread runs.
MR_OF_THREAD MrFaultSlot* mr_fault;
MR_OF_THREAD unsigned* mr_fault_word;
MR_OF_THREAD void* mr_place_to_leave[5];
/// For threads with stacks; else null.
MR_OF_THREAD void (*mr_leave_stack)();

/// `line` takes the place of the index in other reports. All ones as the parameter means an assertion.
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
  if (mr_leave_stack != nullptr) mr_leave_stack();
  __builtin_longjmp(mr_place_to_leave, 1);
}
/// Follows the call that the longjmp may leave: clang would otherwise make it a tail call and release the frame to jump
/// back to.
static MR_INLINE void mr_keep_frame() {
  asm volatile("");
}
/// A separate function, because a function must not longjmp into itself.
template <auto Kernel, class... Args>
static __attribute__((noinline)) void mr_run_thread(Args... args) {
  if (__builtin_setjmp(mr_place_to_leave) == 0) {
    Kernel(args...);
    mr_keep_frame();
  }
}
