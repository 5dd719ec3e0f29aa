// Barriers and pipelines of CUDA's C++ library for the threads of a block: cuda::barrier, cuda::pipeline and
// cuda::memcpy_async, which copies at once.
#pragma once

#include "condition_waits.h"
#include "cub_common.h"
#include "cuda_atomic.h"

namespace cuda {

/// A number of bytes with a known alignment.
template <size_t Alignment>
struct aligned_size_t {
  static constexpr size_t align = Alignment;
  size_t value;
  MR_INLINE explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  MR_INLINE constexpr operator size_t() const { return value; }
};

template <thread_scope Scope, class Completion = void>
class barrier {
  static_assert(Scope == thread_scope_block || Scope == thread_scope_thread,
                "Barriers between blocks need a GPU: here a cuda::barrier is for the threads of one block.");

 public:
  using arrival_token = unsigned long long;

  barrier() = default;
  MR_INLINE explicit barrier(long expected) { reset(expected); }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  friend MR_INLINE void init(barrier* made, long expected) { made->reset(expected); }
  static constexpr long max() { return 1 << 20; }

  /// The token is the number of the phase that the thread arrived in.
  MR_INLINE arrival_token arrive(long count = 1) {
    mr_race_release_by(this);
    const arrival_token token = phase_;
    left_ -= count;
    if (left_ <= 0) {
      ++phase_;
      left_ = expected_;
    }
    return token;
  }
  MR_INLINE void arrive_and_drop() {
    --expected_;
    arrive();
  }

  /// Waits for the end of a phase. Returns true.
  MR_INLINE bool wait(arrival_token token) const {
    const phase_end end{{&phase_end::test}, this, token};
    if (phase_ <= token) mr_wait_at(end);
    mr_race_acquire_by(this);
    return true;
  }
  MR_INLINE bool arrive_and_wait() { return wait(arrive()); }
  /// Waits instead of telling that the phase has not ended, so that a loop around it ends.
  MR_INLINE bool try_wait(arrival_token token) const { return wait(token); }
  MR_INLINE bool wait_parity(bool parity) const { return wait((phase_ & 1) == parity ? phase_ : phase_ - 1); }
  MR_INLINE bool try_wait_parity(bool parity) const { return wait_parity(parity); }

 private:
  struct phase_end : mr_gate {
    const barrier* of;
    arrival_token phase;
    static bool test(const mr_gate* gate) {
      const auto* own = static_cast<const phase_end*>(gate);
      return own->of->phase_ > own->phase;
    }
  };
  MR_INLINE void reset(long expected) {
    mr_race_pass(this, sizeof(*this));
    expected_ = left_ = expected;
    // The token before the first phase, of the other parity, is one of an ended phase.
    phase_ = 2;
  }
  long expected_, left_;
  arrival_token phase_;
};

enum class pipeline_role { producer, consumer };

/// How often each stage was filled and emptied, by all threads.
template <thread_scope Scope, unsigned char Stages>
struct pipeline_shared_state {
  unsigned long long filled[Stages], emptied[Stages];
  unsigned producers, consumers, votes[2];
};

template <thread_scope Scope>
class pipeline {
 public:
  pipeline() = default;
  pipeline(pipeline&&) = default;
  pipeline(const pipeline&) = delete;
  pipeline& operator=(pipeline&&) = default;

  MR_INLINE void producer_acquire() {
    if (stages_ != 0) wait_for(emptied_ + head_ % stages_, head_ / stages_ * *consumers_);
  }
  MR_INLINE void producer_commit() {
    if (stages_ != 0) {
      mr_race_release_by(filled_ + head_ % stages_);
      ++filled_[head_ % stages_];
    }
    ++head_;
  }
  MR_INLINE void consumer_wait() {
    if (stages_ != 0) wait_for(filled_ + tail_ % stages_, (tail_ / stages_ + 1) * *producers_);
  }
  MR_INLINE void consumer_release() {
    if (stages_ != 0) {
      mr_race_release_by(emptied_ + tail_ % stages_);
      ++emptied_[tail_ % stages_];
    }
    ++tail_;
  }
  MR_INLINE bool quit() { return true; }

 private:
  template <thread_scope, unsigned char>
  friend struct mr_pipeline_maker;

  /// That a counter of a stage has a value.
  struct count_reached : mr_gate {
    const unsigned long long* counter;
    unsigned long long least;
    static bool test(const mr_gate* gate) {
      const auto* own = static_cast<const count_reached*>(gate);
      return *own->counter >= own->least;
    }
  };
  static MR_INLINE void wait_for(const unsigned long long* counter, unsigned long long least) {
    const count_reached reached{{&count_reached::test}, counter, least};
    if (*counter < least) mr_wait_at(reached);
    mr_race_acquire_by(counter);
  }

  unsigned long long *filled_ = nullptr, *emptied_ = nullptr;
  const unsigned *producers_ = nullptr, *consumers_ = nullptr;
  unsigned long long head_ = 0, tail_ = 0;
  /// 0 for the pipeline of one thread, whose copies are done when they are issued.
  unsigned stages_ = 0;
};

template <thread_scope Scope, unsigned char Stages>
struct mr_pipeline_maker {
  using State = pipeline_shared_state<Scope, Stages>;
  /// All threads vote, wait for each other, and the first one that goes on sets up the state.
  static MR_INLINE pipeline<Scope> make(State* state, bool produces, bool consumes) {
    mr_race_pass(state, sizeof(*state));
    state->votes[0] += produces;
    state->votes[1] += consumes;
    __syncthreads();
    if (state->votes[0] + state->votes[1] != 0) {
      state->producers = state->votes[0];
      state->consumers = state->votes[1];
      state->votes[0] = state->votes[1] = 0;
      for (unsigned stage = 0; stage < Stages; ++stage) state->filled[stage] = state->emptied[stage] = 0;
    }
    pipeline<Scope> made;
    made.filled_ = state->filled;
    made.emptied_ = state->emptied;
    made.producers_ = &state->producers;
    made.consumers_ = &state->consumers;
    made.stages_ = Stages;
    return made;
  }
};

MR_INLINE pipeline<thread_scope_thread> make_pipeline() {
  return {};
}
template <class Group, thread_scope Scope, unsigned char Stages>
MR_INLINE auto make_pipeline(const Group&, pipeline_shared_state<Scope, Stages>* state) {
  return mr_pipeline_maker<Scope, Stages>::make(state, true, true);
}
template <class Group, thread_scope Scope, unsigned char Stages>
MR_INLINE auto make_pipeline(const Group&, pipeline_shared_state<Scope, Stages>* state, pipeline_role role) {
  return mr_pipeline_maker<Scope, Stages>::make(state, role == pipeline_role::producer,
                                                role == pipeline_role::consumer);
}
template <class Group, thread_scope Scope, unsigned char Stages>
MR_INLINE auto make_pipeline(const Group& group, pipeline_shared_state<Scope, Stages>* state, size_t producers) {
  const bool produces = group.thread_rank() < producers;
  return mr_pipeline_maker<Scope, Stages>::make(state, produces, !produces);
}
/// Copies of one thread are done when they are issued.
template <unsigned char, thread_scope Scope>
MR_INLINE void pipeline_consumer_wait_prior(pipeline<Scope>&) {
  static_assert(Scope == thread_scope_thread, "pipeline_consumer_wait_prior is for the pipeline of one thread here.");
}

/// Copies at once. Of a group, its first thread copies.
template <class Shape, class Signal>
MR_INLINE void memcpy_async(void* to, const void* from, Shape bytes, Signal&) {
  __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}
template <class Group, class Shape, class Signal>
MR_INLINE void memcpy_async(const Group& group, void* to, const void* from, Shape bytes, Signal&) {
  if (group.thread_rank() == 0) __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}

namespace std {
template <class Completion = void>
using barrier = ::cuda::barrier<thread_scope_block, Completion>;
}  // namespace std

}  // namespace cuda
