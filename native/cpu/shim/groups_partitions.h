// More of cooperative groups: groups of a kind that is known at run time, groups by label, scans, and copies.
#pragma once

#include "groups.h"

namespace cooperative_groups {

/// A wait at the block's barrier or for the lanes of a mask.
struct [[nodiscard]] mr_group_sync : mr_warp_wait<mr_finish_void> {
  template <class Promise>
  MR_INLINE void await_suspend(std::coroutine_handle<Promise> self) noexcept {
    mr_thread* thread = self.promise().thread;
    thread->frame = self.address();
    if (request.mask == 0) {
      ++thread->barrier->arrived;
    } else {
      thread->request = &request;
    }
  }
};

/// A block, a tile or coalesced lanes.
class thread_group {
 public:
  MR_INLINE thread_group(const thread_block&) : mask_(0) {}
  template <unsigned Size, class Parent>
    requires(Size <= 32)
  MR_INLINE thread_group(const thread_block_tile<Size, Parent>& tile)
      : mask_((Size == 32 ? mr_all_lanes : (1u << Size % 32) - 1u) << (mr_rank() % 32 - tile.thread_rank())) {}
  MR_INLINE thread_group(const coalesced_group& lanes) : mask_(lanes.mr_mask()) {}
  MR_INLINE explicit thread_group(unsigned mask) : mask_(mask) {}

  MR_INLINE unsigned size() const {
    return mask_ == 0 ? thread_block::num_threads() : static_cast<unsigned>(__builtin_popcount(mask_));
  }
  MR_INLINE unsigned num_threads() const { return size(); }
  MR_INLINE unsigned thread_rank() const {
    const unsigned before = mask_ & ((1u << mr_rank() % 32) - 1u);
    return mask_ == 0 ? mr_rank() : static_cast<unsigned>(__builtin_popcount(before));
  }
  MR_INLINE mr_group_sync sync() const { return {mr_ask(mr_warp_call::sync, mask_, 0, 0, 0, mr_finish_void{})}; }

 private:
  unsigned mask_;
};
/// Tiles of a block or of a warp's tile, of up to 32 threads.
MR_INLINE thread_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned lanes = size >= 32 ? mr_all_lanes : (1u << size) - 1u;
  return thread_group(lanes << (mr_rank() % 32 / size * size));
}

struct mr_finish_label {
  unsigned mask;
  MR_INLINE coalesced_group operator()(unsigned long long same) const {
    return coalesced_group(static_cast<unsigned>(same) & mask);
  }
};
struct mr_finish_binary {
  unsigned mask;
  bool own;
  MR_INLINE coalesced_group operator()(unsigned long long ballot) const {
    const auto yes = static_cast<unsigned>(ballot) & mask;
    return coalesced_group(own ? yes : mask & ~yes);
  }
};
template <unsigned Size, class Parent>
  requires(Size <= 32)
MR_INLINE unsigned mr_mask_of(const thread_block_tile<Size, Parent>& tile) {
  return (Size == 32 ? mr_all_lanes : (1u << Size % 32) - 1u) << (mr_rank() % 32 - tile.thread_rank());
}
MR_INLINE unsigned mr_mask_of(const coalesced_group& group) {
  return group.mr_mask();
}
/// The lanes of the group with the same label.
template <class Group, class Label>
MR_INLINE auto labeled_partition(const Group& group, Label label) {
  using Value = typename mr_shuffled<Label>::type;
  const unsigned mask = mr_mask_of(group);
  return mr_ask(mr_warp_call::match_any, mask, 6, mr_bits_of(static_cast<Value>(label)), 0, mr_finish_label{mask});
}
template <class Group>
MR_INLINE auto binary_partition(const Group& group, bool predicate) {
  const unsigned mask = mr_mask_of(group);
  return mr_ask(mr_warp_call::ballot, mask, 7, predicate, 0, mr_finish_binary{mask, predicate});
}

template <class Group>
inline constexpr bool mr_is_wide = false;
template <unsigned Size, class Parent>
inline constexpr bool mr_is_wide<thread_block_tile<Size, Parent>> = Size > 32;

/// Folds the values of the lanes before this one, and its own.
template <class Group, class T, class Operation>
mr_dco<T> inclusive_scan(Group group, T value, Operation operation) {
  if constexpr (mr_is_wide<Group>) {
    co_return co_await group.mr_scanned(value, operation, true);
  } else {
    const unsigned rank = group.thread_rank();
    for (unsigned by = 1; by < group.size(); by *= 2) {
      const T other = co_await group.shfl_up(value, static_cast<int>(by));
      if (rank >= by) value = operation(other, value);
    }
    co_return value;
  }
}
template <class Group, class T>
mr_dco<T> inclusive_scan(Group group, T value) {
  co_return co_await inclusive_scan(group, value, plus<T>{});
}
/// The first lane's result is T{}.
template <class Group, class T, class Operation>
mr_dco<T> exclusive_scan(Group group, T value, Operation operation) {
  if constexpr (mr_is_wide<Group>) {
    co_return co_await group.mr_scanned(value, operation, false);
  } else {
    const T up_to = co_await inclusive_scan(group, value, operation);
    const T before = co_await group.shfl_up(up_to, 1);
    co_return group.thread_rank() == 0 ? T{} : before;
  }
}
template <class Group, class T>
mr_dco<T> exclusive_scan(Group group, T value) {
  co_return co_await exclusive_scan(group, value, plus<T>{});
}

/// Copies at once: the group's first thread copies. Sizes are in bytes, or in elements with two counts.
template <class Group, class T, class U, class Shape>
MR_INLINE void memcpy_async(const Group& group, T* to, const U* from, const Shape& bytes) {
  if (group.thread_rank() == 0) __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}
template <class Group, class T, class U, class Shape>
MR_INLINE void memcpy_async(const Group& group, T* to, const Shape& room, const U* from, const Shape& count) {
  const size_t least = static_cast<size_t>(count) < static_cast<size_t>(room) ? count : room;
  if (group.thread_rank() == 0) __builtin_memcpy(to, from, least * sizeof(T));
}
template <class Group>
MR_INLINE auto wait(const Group& group) {
  return group.sync();
}
template <unsigned, class Group>
MR_INLINE auto wait_prior(const Group& group) {
  return group.sync();
}

}  // namespace cooperative_groups
