// Threads of a block that can wait: each has a stack of its own from its first instruction until it returns. A wait
// leaves the stack, and the loop over the threads (block_threads.h) goes on.
//
// A thread takes the stack that was left last, so the threads of a kernel that does not wait all run on one.
#pragma once

#include "kernel_exports.h"
#include "stack_switch.h"

/// CUDA's limit on every device, and this device's.
static constexpr unsigned mr_most_threads_of_block = 1024;

/// Stacks begin at different cache lines: of threads that run in turns, the same lines would displace each other.
static MR_INLINE char* mr_top_of_stack(char* lowest, unsigned number) {
  return lowest + (number + 1) * mr_stack_bytes - number % 15 * 256;
}

struct mr_request;
/// A condition that a thread waits for (condition_waits.h).
struct mr_gate {
  bool (*is_open)(const mr_gate*);
};

/// The block barrier, and the votes of its threads.
struct mr_block_barrier {
  unsigned voters = 0, votes = 0;
  /// Of the threads that go on now.
  unsigned last_voters = 0, last_votes = 0;
  /// Whether some thread waits for the whole grid.
  bool is_of_grid = false;

  MR_INLINE void release() {
    last_voters = voters;
    last_votes = votes;
    voters = votes = 0;
    is_of_grid = false;
  }
};

/// One thread of a block. Without initialisers: a block may have fewer threads than there is room for.
struct mr_thread {
  mr_place place;
  /// The warp operation that it waits for; null when it is at a block barrier, or runs.
  mr_request* request;
  /// The gate that it waits at, if any.
  const mr_gate* gate;
  mr_index3 index;
  /// Its lane in its warp.
  int lane;
  /// Its stack; null before it begins and after it has returned.
  char* stack;
  bool has_returned;
};

/// What the threads of a block have in common, while a pool thread runs blocks.
struct mr_block_run {
  /// Where the loop over the threads goes on.
  mr_place loop;
  mr_thread* running = nullptr;
  /// The running warp, and the running lane with those that run after it, without a return to the loop.
  mr_thread* warp = nullptr;
  unsigned chain = 0;
  mr_block_barrier barrier;
  /// Calls the kernel.
  void (*begin)() = nullptr;
  const void* body = nullptr;
  /// Stacks that no thread has; the last was used most recently.
  char** free_stacks = nullptr;
  unsigned free_count = 0;
};
MR_OF_THREAD mr_block_run mr_run_of_block;

/// Makes the first lane of the chain the running thread.
static MR_INLINE mr_place* mr_next(mr_block_run& run) {
  mr_thread& thread = run.warp[__builtin_ctz(run.chain)];
  if (thread.stack == nullptr) {
    thread.stack = run.free_stacks[--run.free_count];
    thread.place = mr_beginning(thread.stack, run.begin);
  }
  run.running = &thread;
  threadIdx = thread.index;
  return &thread.place;
}
/// The running thread waits until the loop over the threads lets it go on.
MR_INLINE void mr_wait() {
  mr_block_run& run = mr_run_of_block;
  mr_place* const self = &run.running->place;
  run.chain &= run.chain - 1;
  mr_switch(self, run.chain != 0 ? mr_next(run) : &run.loop);
}
/// The running thread has returned.
[[noreturn]] static inline void mr_end_thread() {
  mr_block_run& run = mr_run_of_block;
  run.running->has_returned = true;
  run.free_stacks[run.free_count++] = run.running->stack;
  mr_wait();
  __builtin_unreachable();
}

/// The first code on a stack.
template <class Body>
static void mr_begin_thread() {
  (*static_cast<const Body*>(mr_run_of_block.body))(mr_run_of_block.running->index);
  mr_end_thread();
}
