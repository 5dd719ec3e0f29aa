// More of cooperative groups: groups of a kind that is known at run time, groups by label, scans, and copies.
#pragma once

#include "groups.h"

namespace cooperative_groups {

/// A block, a tile or coalesced lanes.
class thread_group {
 public:
  MR_INLINE thread_group(const thread_block&) : mask_(0) {}
  template <unsigned Size, class Parent, class = mr_enable_if_t<(Size <= 32), void>>
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
  MR_INLINE void sync() const { mask_ == 0 ? __syncthreads() : __syncwarp(mask_); }

 private:
  unsigned mask_;
};
/// Tiles of a block or of a warp's tile, of up to 32 threads.
MR_INLINE thread_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned lanes = size >= 32 ? mr_all_lanes : (1u << size) - 1u;
  return thread_group(lanes << (mr_rank() % 32 / size * size));
}

template <unsigned Size, class Parent>
MR_INLINE mr_enable_if_t<(Size <= 32), unsigned> mr_mask_of(const thread_block_tile<Size, Parent>& tile) {
  return (Size == 32 ? mr_all_lanes : (1u << Size % 32) - 1u) << (mr_rank() % 32 - tile.thread_rank());
}
MR_INLINE unsigned mr_mask_of(const coalesced_group& group) {
  return group.mr_mask();
}
/// The lanes of the group with the same label.
template <class Group, class Label>
MR_INLINE coalesced_group labeled_partition(const Group& group, Label label) {
  const unsigned mask = mr_mask_of(group);
  return coalesced_group(mr_match_any(mask, 6, label) & mask);
}
template <class Group>
MR_INLINE coalesced_group binary_partition(const Group& group, bool predicate) {
  const unsigned mask = mr_mask_of(group);
  const unsigned yes = mr_ballot(mask, 7, predicate) & mask;
  return coalesced_group(predicate ? yes : mask & ~yes);
}

template <class Group>
inline constexpr bool mr_is_wide = false;
template <unsigned Size, class Parent>
inline constexpr bool mr_is_wide<thread_block_tile<Size, Parent>> = Size > 32;

/// Folds the values of the lanes before this one, and its own.
template <class Group, class T, class Operation>
T inclusive_scan(Group group, T value, Operation operation) {
  if constexpr (mr_is_wide<Group>) {
    return group.mr_scanned(value, operation, true);
  } else {
    const unsigned rank = group.thread_rank();
    for (unsigned by = 1; by < group.size(); by *= 2) {
      const T other = group.shfl_up(value, static_cast<int>(by));
      if (rank >= by) value = operation(other, value);
    }
    return value;
  }
}
template <class Group, class T>
T inclusive_scan(Group group, T value) {
  return inclusive_scan(group, value, plus<T>{});
}
/// The first lane's result is T{}.
template <class Group, class T, class Operation>
T exclusive_scan(Group group, T value, Operation operation) {
  if constexpr (mr_is_wide<Group>) {
    return group.mr_scanned(value, operation, false);
  } else {
    const T up_to = inclusive_scan(group, value, operation);
    const T before = group.shfl_up(up_to, 1);
    return group.thread_rank() == 0 ? T{} : before;
  }
}
template <class Group, class T>
T exclusive_scan(Group group, T value) {
  return exclusive_scan(group, value, plus<T>{});
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
MR_INLINE void wait(const Group& group) {
  group.sync();
}
template <unsigned, class Group>
MR_INLINE void wait_prior(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
