// Runs the blocks of a kernel whose threads wait: each thread has a stack (thread_stacks.h), and
// they run in thread order.
//
// A warp runs until each of its lanes has returned or is at a block barrier; then the next warp runs. When all
// remaining threads are at a barrier, they continue; if one of them is at a grid barrier, the other blocks must arrive
// first. Barriers do not wait for threads that have returned. All barriers of a block are one barrier.
#pragma once

#include "kernel_exports.h"
#include "warp.h"

static MR_INLINE unsigned mr_rank_of(const mr_thread& thread) {
  return (thread.index.z * blockDim.y + thread.index.y) * blockDim.x + thread.index.x;
}
/// Tells that the lanes have met. Lanes that are only active together have not.
static MR_INLINE void mr_tell_met(const mr_thread* threads, const mr_warp_requests& requests, unsigned met) {
  if (met == 0 || requests.of[__builtin_ctz(met)]->call == mr_warp_call::active) return;
  mr_tell(mr_race_warp, mr_rank_of(threads[0]), met);
}

/// Runs lanes of a warp, one after the other, until each waits or returns.
static MR_INLINE void mr_go_on(mr_thread* warp, unsigned lanes) {
  mr_block_run& run = mr_run_of_block;
  run.warp = warp;
#if defined(MR_FINDS_RACES)
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    run.chain = rest & -rest;
    mr_race_thread(mr_rank_of(warp[__builtin_ctz(rest)]));
    mr_switch(&run.loop, mr_next(run));
    mr_race_thread(mr_race_no_thread);
  }
#else
  run.chain = lanes;
  mr_switch(&run.loop, mr_next(run));
#endif
}

#if defined(MR_GATES)
/// One pass over the threads of a block.
struct mr_round {
  /// Whether threads at the block's barrier go on.
  bool is_first;
  bool opens_all;
  bool has_moved;
  /// Whether threads are left at gates.
  bool is_held;
};
static unsigned mr_run_to_barrier(mr_thread* threads, unsigned count);
#else
/// Resumes the threads of a warp until each has returned or is at a block barrier. Returns the number that have not
/// returned.
static unsigned mr_run_warp(mr_thread* threads, unsigned count) {
  mr_warp_requests requests;
  unsigned alive = 0;
  unsigned waiting = 0;
  for (unsigned lane = 0; lane < count; ++lane) alive |= static_cast<unsigned>(!threads[lane].has_returned) << lane;
  for (unsigned lanes = alive; lanes != 0;) {
    mr_go_on(threads, lanes);
    for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      mr_thread& thread = threads[lane];
      if (thread.has_returned) alive &= ~(1u << lane);
      if (thread.request == nullptr) continue;
      requests.of[lane] = thread.request;
      thread.request = nullptr;
      waiting |= 1u << lane;
    }
    lanes = waiting == 0 ? 0 : mr_answer(requests, waiting, alive);
    mr_tell_met(threads, requests, lanes);
    waiting &= ~lanes;
  }
  return static_cast<unsigned>(__builtin_popcount(alive));
}

static MR_INLINE unsigned mr_run_to_barrier(mr_thread* threads, unsigned count) {
  unsigned alive = 0;
  for (unsigned from = 0; from < count; from += 32) {
    alive += mr_run_warp(threads + from, count - from < 32 ? count - from : 32);
  }
  return alive;
}
#endif

template <bool IsPassedIndices, auto Kernel, class... Args>
static void mr_run_waiting_blocks(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                                  Args... args) {
  const int width = static_cast<int>(launch->block[0]);
  const int height = static_cast<int>(launch->block[1]);
  const unsigned count = launch->block[0] * launch->block[1] * launch->block[2];
  const int columns = static_cast<int>(launch->grid[0]);
  const int rows = static_cast<int>(launch->grid[1]);
  const mr_index3 block_dim{mr_index(width), mr_index(height), mr_index(static_cast<int>(launch->block[2]))};
  const mr_index3 grid_dim{mr_index(columns), mr_index(rows), mr_index(static_cast<int>(launch->grid[2]))};
  mr_launch_of_block = launch;
  mr_dynamic_shared = launch->dynamic_shared;
  mr_dynamic_shared_bytes = launch->shared_bytes;
  blockDim = block_dim;
  gridDim = grid_dim;

  mr_index3 block_index;
  const auto body = [&](const mr_index3& thread_index) {
    if constexpr (IsPassedIndices) {
      Kernel(thread_index, block_index, block_dim, grid_dim, args...);
    } else {
      Kernel(args...);
    }
  };
  alignas(64) char room[mr_most_threads_of_block * sizeof(mr_thread)];  // Not initialised.
  auto* const threads = reinterpret_cast<mr_thread*>(room);
  char* stacks[mr_most_threads_of_block];
  char* const lowest = mr_take_stacks(count);
  for (unsigned n = 0; n < count; ++n) stacks[n] = mr_top_of_stack(lowest, count - 1 - n);
  mr_block_run& run = mr_run_of_block;
  run.begin = &mr_begin_thread<decltype(body)>;
  run.body = &body;
  run.free_stacks = stacks;
  run.free_count = count;
  run.barrier = {};
#if defined(MR_ASSERTING)
  mr_leave_stack = &mr_end_thread;
#endif
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch); ++block) {
    block_index = {mr_index(static_cast<int>(block % columns)), mr_index(static_cast<int>(block / columns % rows)),
                   mr_index(static_cast<int>(block / columns / rows))};
    blockIdx = block_index;
    launch->block_now = block;
    mr_tell(mr_race_begin_block, count);
    for (unsigned number = 0; number < count; ++number) {
      const int n = static_cast<int>(number);
      mr_thread& thread = threads[number];
      thread.request = nullptr;
      thread.gate = nullptr;
      thread.index = {mr_index(n % width), mr_index(n / width % height), mr_index(n / width / height)};
      thread.lane = n & 31;
      thread.stack = nullptr;
      thread.has_returned = false;
    }
    for (unsigned alive = count; alive != 0;) {
      alive = mr_run_to_barrier(threads, count);
      if (run.barrier.is_of_grid) mr_wait_for_grid();
      run.barrier.release();
      mr_tell(mr_race_barrier);
    }
    mr_tell(mr_race_end_block);
  }
}

/// A kernel whose threads may wait, by its function type.
template <class Function>
struct mr_waiting_signature;
template <bool IsPassedIndices, class... Params>
struct mr_waiting_signature_of : mr_signature<void(Params...)> {
  template <auto Kernel, unsigned... Number>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_waiting_blocks<IsPassedIndices, Kernel, Params...>(launch, first, end,
                                                              mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};
template <class... Params>
struct mr_waiting_signature<void(Params...)> : mr_waiting_signature_of<false, Params...> {};
template <class... Params>
struct mr_waiting_signature<void(mr_index3, mr_index3, mr_index3, mr_index3, Params...)>
    : mr_waiting_signature_of<true, Params...> {};

/// Like MR_KERNEL_OF, for a kernel whose threads may wait.
#define MR_WAITING_KERNEL_OF(name, ...) MR_EXPORT_KERNEL(mr_waiting_signature, name, __VA_ARGS__)
