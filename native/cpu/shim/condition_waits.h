// Threads that wait at a gate: a condition that other threads of the block will make true, as a cuda::barrier's phase.
//
// In a round, threads run until each has returned, is at the block's barrier or at a closed gate. While some thread is
// at a gate, the barrier stays closed, and only threads whose gates have opened go on. If none has, no thread can open
// one: a GPU would hang, and here every gate opens, so that no thread waits forever.
#pragma once

#include "block_threads.h"

/// The running thread waits until the gate is open.
MR_INLINE void mr_wait_at(const mr_gate& gate) {
  mr_run_of_block.running->gate = &gate;
  mr_wait();
}

/// One round of a warp. Returns the number of threads that have not returned.
static unsigned mr_run_gated_warp(mr_thread* threads, unsigned count, mr_round& round) {
  mr_warp_requests requests;
  unsigned alive = 0, waiting = 0, gated = 0;
  const auto look = [&](unsigned lane) {
    mr_thread& thread = threads[lane];
    if (thread.has_returned) alive &= ~(1u << lane);
    if (thread.gate != nullptr) gated |= 1u << lane;
    if (thread.request == nullptr) return;
    requests.of[lane] = thread.request;
    thread.request = nullptr;
    waiting |= 1u << lane;
  };
  const auto go_on = [&](unsigned lane) {
    round.has_moved = true;
    mr_go_on(threads, 1u << lane);
    look(lane);
  };
  for (unsigned lane = 0; lane < count; ++lane) {
    mr_thread& thread = threads[lane];
    if (thread.has_returned) continue;
    alive |= 1u << lane;
    if (round.is_first && thread.gate == nullptr && thread.request == nullptr) {
      go_on(lane);
    } else {
      look(lane);
    }
  }
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (unsigned rest = gated; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      mr_thread& thread = threads[lane];
      if (!round.opens_all && !thread.gate->is_open(thread.gate)) continue;
      thread.gate = nullptr;
      gated &= ~(1u << lane);
      is_moving = true;
      go_on(lane);
    }
    if (waiting == 0) continue;
    const unsigned answered = mr_answer(requests, waiting, alive, gated == 0);
    mr_tell_met(threads, requests, answered);
    waiting &= ~answered;
    is_moving = is_moving || answered != 0;
    for (unsigned rest = answered; rest != 0; rest &= rest - 1) go_on(static_cast<unsigned>(__builtin_ctz(rest)));
  }
  for (unsigned rest = waiting; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    threads[lane].request = requests.of[lane];
  }
  round.is_held = round.is_held || gated != 0 || waiting != 0;
  return static_cast<unsigned>(__builtin_popcount(alive));
}

/// Runs the threads of a block to its next barrier. Returns the number that have not returned.
static unsigned mr_run_to_barrier(mr_thread* threads, unsigned count) {
  for (mr_round round{true, false, false, false};;) {
    unsigned alive = 0;
    for (unsigned from = 0; from < count; from += 32) {
      alive += mr_run_gated_warp(threads + from, count - from < 32 ? count - from : 32, round);
    }
    if (!round.is_held) return alive;
    round = {false, !round.has_moved, false, false};
  }
}
