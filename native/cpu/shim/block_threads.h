// Runs the blocks of a kernel whose threads wait: one coroutine per thread, resumed in thread order.
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

#if defined(MR_ASSERTING)
/// Resumes a thread. A thread whose assertion fails counts as returned; its frames are freed when the blocks end.
static __attribute__((noinline)) void mr_go_on(mr_thread& thread) {
  mr_race_thread(mr_rank_of(thread));
  if (__builtin_setjmp(mr_place_to_leave) == 0) {
    std::coroutine_handle<>::from_address(thread.frame).resume();
    mr_keep_frame();
  } else {
    mr_race_thread(mr_race_no_thread);
    thread.frame = nullptr;
    thread.request = nullptr;
  }
  mr_race_thread(mr_race_no_thread);
}
#else
static MR_INLINE void mr_go_on(mr_thread& thread) {
  mr_race_thread(mr_rank_of(thread));
  std::coroutine_handle<>::from_address(thread.frame).resume();
  mr_race_thread(mr_race_no_thread);
}
#endif

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
  const auto go_on = [&](unsigned lane) {
    mr_thread& thread = threads[lane];
    threadIdx = thread.index;
    mr_go_on(thread);
    if (thread.frame == nullptr) alive &= ~(1u << lane);
    if (thread.request == nullptr) return;
    requests.of[lane] = thread.request;
    thread.request = nullptr;
    waiting |= 1u << lane;
  };
  for (unsigned lane = 0; lane < count; ++lane) {
    if (threads[lane].frame == nullptr) continue;
    alive |= 1u << lane;
    go_on(lane);
  }
  while (waiting != 0) {
    const unsigned answered = mr_answer(requests, waiting, alive);
    mr_tell_met(threads, requests, answered);
    waiting &= ~answered;
    for (unsigned rest = answered; rest != 0; rest &= rest - 1) go_on(static_cast<unsigned>(__builtin_ctz(rest)));
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
  blockDim = block_dim;
  gridDim = grid_dim;

  mr_frames frames;
  mr_current_frames = &frames;
  mr_block_barrier barrier;
  auto* threads = static_cast<mr_thread*>(frames.take(count * sizeof(mr_thread)));
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch); ++block) {
    const mr_index3 block_index{mr_index(static_cast<int>(block % columns)),
                                mr_index(static_cast<int>(block / columns % rows)),
                                mr_index(static_cast<int>(block / columns / rows))};
    blockIdx = block_index;
    launch->block_now = block;
    mr_tell(mr_race_begin_block, count);
    for (unsigned number = 0; number < count; ++number) {
      mr_thread& thread = threads[number];
      const int n = static_cast<int>(number);
      thread = {};
      thread.index = {mr_index(n % width), mr_index(n / width % height), mr_index(n / width / height)};
      thread.barrier = &barrier;
      thread.lane = n & 31;
      mr_task task;
      if constexpr (IsPassedIndices) {
        task = Kernel(thread.index, block_index, block_dim, grid_dim, args...);
      } else {
        task = Kernel(args...);
      }
      task.handle.promise().thread = &thread;
      thread.frame = task.handle.address();
    }
    for (unsigned alive = count; alive != 0;) {
      alive = mr_run_to_barrier(threads, count);
      if (barrier.is_of_grid) mr_wait_for_grid();
      barrier.release();
      mr_tell(mr_race_barrier);
    }
    mr_tell(mr_race_end_block);
  }
  mr_current_frames = nullptr;
}

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
struct mr_signature<mr_task(Params...)> : mr_waiting_signature_of<false, Params...> {};
template <class... Params>
struct mr_signature<mr_task(mr_index3, mr_index3, mr_index3, mr_index3, Params...)>
    : mr_waiting_signature_of<true, Params...> {};
