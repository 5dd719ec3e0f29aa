// Tiles of cooperative groups with more threads than a warp. Their threads meet at gates (condition_waits.h): when all
// that have not returned are there, the last one computes the results of all.
#pragma once

#include "condition_waits.h"
#include "groups.h"

namespace cooperative_groups {

/// Waits for the other threads of a tile. `Meet` computes the results from the values.
template <unsigned Size, class T, class Meet>
class mr_tile_wait : public mr_gate {
 public:
  MR_INLINE mr_tile_wait(T given, Meet by) : mr_gate{&test}, value(given), result(given), meet(by) {
    mr_thread* thread = mr_run_of_block.running;
    const unsigned rank = mr_rank();
    const unsigned in_block = thread_block::num_threads();
    const unsigned start = rank / Size * Size;
    first_ = thread - (rank - start);
    count_ = in_block - start < Size ? in_block - start : Size;
  }

  /// The waits of the tile by rank; null for threads that have returned.
  MR_INLINE mr_tile_wait* at(unsigned rank) const {
    return rank >= count_ || first_[rank].has_returned ? nullptr : of(first_[rank]);
  }
  MR_INLINE unsigned count() const { return count_; }
  MR_INLINE const mr_thread& thread(unsigned rank) const { return first_[rank]; }

  T value;
  T result;
  Meet meet;

 private:
  static MR_INLINE mr_tile_wait* of(const mr_thread& thread) {
    return const_cast<mr_tile_wait*>(static_cast<const mr_tile_wait*>(thread.gate));
  }
  static bool test(const mr_gate* gate) {
    const auto* own = static_cast<const mr_tile_wait*>(gate);
    if (own->is_passed_) return true;
    // From the end, because the last threads arrive last.
    for (unsigned rank = own->count_; rank-- > 0;) {
      const mr_thread& thread = own->first_[rank];
      if (thread.has_returned) continue;
      if (thread.gate == nullptr || thread.gate->is_open != &test || of(thread)->is_passed_) return false;
    }
    Meet::meet(*own);
    for (unsigned rank = 0; rank < own->count_; ++rank) {
      if (mr_tile_wait* wait = own->at(rank)) wait->is_passed_ = true;
    }
    return true;
  }

  mr_thread* first_;
  unsigned count_;
  bool is_passed_ = false;
};

struct mr_meet_only {
  template <class Wait>
  static void meet(const Wait&) {}
};
/// Waits for the other threads of the tile, and returns the thread's result.
template <unsigned Size, class T, class Meet>
MR_INLINE T mr_meet_in_tile(T value, Meet meet) {
  mr_tile_wait<Size, T, Meet> wait(value, meet);
  mr_wait_at(wait);
  return wait.result;
}

/// Fails the launch. On a GPU, a warp waits for the warp of its own source rank, so the tile would hang.
static __attribute__((noinline, cold)) void mr_fail_shuffle(const mr_thread& first, MrShuffle::Call first_call,
                                                            const mr_thread& second, MrShuffle::Call second_call) {
  // Who runs the blocks of a GPU, as the driver for tests does, does not check this.
  if (mr_launch_of_block->fail_shuffle == nullptr) return;
  MrShuffle found{{first_call, second_call}};
  const mr_thread* const threads[] = {&first, &second};
  for (int n = 0; n < 2; ++n) {
    const mr_index3& index = threads[n]->index;
    found.calls[n].thread[0] = static_cast<unsigned>(index.x);
    found.calls[n].thread[1] = static_cast<unsigned>(index.y);
    found.calls[n].thread[2] = static_cast<unsigned>(index.z);
  }
  mr_need_stack();
  mr_launch_of_block->fail_shuffle(mr_launch_of_block->run, &found);
}

struct mr_meet_shuffle {
  unsigned source;
  unsigned line;
  template <class Wait>
  static void meet(const Wait& tile) {
    unsigned first = tile.count();
    for (unsigned rank = 0; rank < tile.count(); ++rank) {
      Wait* wait = tile.at(rank);
      if (wait == nullptr) continue;
      if (first == tile.count()) first = rank;
      const mr_meet_shuffle& asked = tile.at(first)->meet;
      if (wait->meet.source != asked.source) {
        mr_fail_shuffle(tile.thread(first), {{}, asked.source, asked.line}, tile.thread(rank),
                        {{}, wait->meet.source, wait->meet.line});
      }
      if (const Wait* from = tile.at(wait->meet.source)) wait->result = from->value;
    }
  }
};
/// All values, in the order of the ranks.
template <class Operation>
struct mr_meet_fold {
  Operation operation;
  template <class Wait>
  static void meet(const Wait& tile) {
    Wait* last = nullptr;
    for (unsigned rank = 0; rank < tile.count(); ++rank) {
      Wait* wait = tile.at(rank);
      if (wait == nullptr) continue;
      wait->result = last == nullptr ? wait->value : wait->meet.operation(last->result, wait->value);
      last = wait;
    }
    for (unsigned rank = 0; rank < tile.count(); ++rank) {
      if (Wait* wait = tile.at(rank)) wait->result = last->result;
    }
  }
};
template <class Operation>
struct mr_meet_scan {
  Operation operation;
  bool has_own;
  template <class Wait>
  static void meet(const Wait& tile) {
    decltype(tile.value) sum{};
    bool is_first = true;
    for (unsigned rank = 0; rank < tile.count(); ++rank) {
      Wait* wait = tile.at(rank);
      if (wait == nullptr) continue;
      const decltype(tile.value) before = sum;
      sum = is_first ? wait->value : wait->meet.operation(sum, wait->value);
      is_first = false;
      wait->result = wait->meet.has_own ? sum : before;
    }
  }
};
struct mr_any_of {
  MR_INLINE int operator()(int a, int b) const { return a | b; }
};
struct mr_all_of {
  MR_INLINE int operator()(int a, int b) const { return a & b; }
};

template <unsigned Size>
class mr_tile_threads<Size, true> {
 public:
  static MR_INLINE void sync() { mr_meet_in_tile<Size>(char{}, mr_meet_only{}); }
  template <class T>
  static MR_INLINE auto shfl(T value, unsigned rank, unsigned line = __builtin_LINE()) {
    using Value = typename mr_shuffled<T>::type;
    return mr_meet_in_tile<Size>(static_cast<Value>(value), mr_meet_shuffle{rank, line});
  }
  static MR_INLINE auto any(int predicate) { return mr_folded(predicate != 0 ? 1 : 0, mr_any_of{}); }
  static MR_INLINE auto all(int predicate) { return mr_folded(predicate != 0 ? 1 : 0, mr_all_of{}); }
  template <class T, class Operation>
  static MR_INLINE auto mr_folded(T value, Operation operation) {
    return mr_meet_in_tile<Size>(value, mr_meet_fold<Operation>{operation});
  }
  template <class T, class Operation>
  static MR_INLINE auto mr_scanned(T value, Operation operation, bool has_own) {
    return mr_meet_in_tile<Size>(value, mr_meet_scan<Operation>{operation, has_own});
  }
};

}  // namespace cooperative_groups
