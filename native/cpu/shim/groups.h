// Cooperative groups: the grid, the block, tiles, and coalesced lanes. The builder includes this header if
// the source names them. groups_partitions.h has what few sources name.
#pragma once

#include "block_threads.h"

namespace cooperative_groups {

/// The thread's rank in the block, x fastest.
MR_INLINE unsigned mr_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

class thread_block {
 public:
  static MR_INLINE void sync() { __syncthreads(); }
  static MR_INLINE unsigned thread_rank() { return mr_rank(); }
  static MR_INLINE unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static MR_INLINE unsigned size() { return num_threads(); }
  static MR_INLINE dim3 group_index() { return blockIdx; }
  static MR_INLINE dim3 thread_index() { return threadIdx; }
  static MR_INLINE dim3 dim_threads() { return blockDim; }
  static MR_INLINE dim3 group_dim() { return blockDim; }
};
MR_INLINE thread_block this_thread_block() {
  return {};
}
/// CUDA's memory for tiles of more than a warp, which need none here.
template <unsigned MaxBlockSize = 1024>
struct block_tile_memory {};
template <unsigned MaxBlockSize>
MR_INLINE thread_block this_thread_block(block_tile_memory<MaxBlockSize>&) {
  return {};
}

/// A block barrier at which the block also waits for the other blocks. Without a cooperative launch, blocks may not run
/// concurrently: the launch then fails like an assertion on line 0.
MR_INLINE void mr_sync_grid() {
  if (mr_launch_of_block->wait_for_grid == nullptr) {
#if defined(MR_ASSERTING)
    mr_assertion_failed(0, blockIdx, threadIdx);
#else
    __builtin_trap();
#endif
  }
  mr_run_of_block.barrier.is_of_grid = true;
  __syncthreads();
}

class grid_group {
 public:
  struct arrival_token {};
  static MR_INLINE bool is_valid() { return mr_launch_of_block->wait_for_grid != nullptr; }
  static MR_INLINE void sync() { mr_sync_grid(); }
  /// Arriving does nothing: barrier_wait returns when all threads have called it.
  static MR_INLINE arrival_token barrier_arrive() { return {}; }
  static MR_INLINE void barrier_wait(arrival_token&&) { mr_sync_grid(); }
  static MR_INLINE unsigned long long num_blocks() {
    return 1ull * static_cast<unsigned>(gridDim.x) * static_cast<unsigned>(gridDim.y) *
           static_cast<unsigned>(gridDim.z);
  }
  static MR_INLINE unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static MR_INLINE unsigned long long size() { return num_threads(); }
  /// x fastest.
  static MR_INLINE unsigned long long block_rank() {
    const unsigned long long layer = static_cast<unsigned>(blockIdx.z);
    return (layer * static_cast<unsigned>(gridDim.y) + static_cast<unsigned>(blockIdx.y)) *
               static_cast<unsigned>(gridDim.x) +
           static_cast<unsigned>(blockIdx.x);
  }
  /// Block by block, x fastest within each.
  static MR_INLINE unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static MR_INLINE dim3 dim_blocks() { return gridDim; }
  static MR_INLINE dim3 group_dim() { return gridDim; }
  static MR_INLINE dim3 dim_threads() {
    return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
  }
  static MR_INLINE dim3 block_index() { return blockIdx; }
  static MR_INLINE dim3 thread_index() {
    return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                blockIdx.z * blockDim.z + threadIdx.z);
  }
};
MR_INLINE grid_group this_grid() {
  return {};
}

/// Exchanges a value word by word, if it has more than 64 bits.
template <class T, class Exchange>
MR_INLINE auto mr_in_words(T value, Exchange exchange) {
  if constexpr (sizeof(T) <= 8) {
    return exchange(value);
  } else {
    unsigned long long words[(sizeof(T) + 7) / 8] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (unsigned long long& word : words) word = exchange(word);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
  }
}

template <unsigned Size, class Parent = void>
class thread_block_tile;

/// Which of its parent's tiles a tile is.
template <unsigned Size, class Parent>
struct mr_tile_place {
  static MR_INLINE unsigned meta_group_rank() { return mr_rank() / Size; }
  static MR_INLINE unsigned meta_group_size() { return (thread_block::num_threads() + Size - 1) / Size; }
};
template <unsigned Size, unsigned Outer, class Parent>
struct mr_tile_place<Size, thread_block_tile<Outer, Parent>> {
  static_assert(Size < Outer, "A tile is smaller than the tile that it is a part of.");
  static MR_INLINE unsigned meta_group_rank() { return mr_rank() % Outer / Size; }
  static constexpr unsigned meta_group_size() { return Outer / Size; }
};
/// Of a parent that is known at run time.
template <unsigned Size>
class mr_tile_place<Size, void> {
 public:
  mr_tile_place() = default;
  template <class Parent>
  MR_INLINE explicit mr_tile_place(const mr_tile_place<Size, Parent>& place)
      : rank_(place.meta_group_rank()), size_(place.meta_group_size()) {}
  MR_INLINE unsigned meta_group_rank() const { return rank_; }
  MR_INLINE unsigned meta_group_size() const { return size_; }

 private:
  unsigned rank_ = mr_rank() / Size;
  unsigned size_ = (thread_block::num_threads() + Size - 1) / Size;
};

/// What the threads of a tile do together. groups_tiles.h has those of tiles with more than a warp.
template <unsigned Size, bool IsWide>
class mr_tile_threads {
 public:
  static MR_INLINE void sync() { __syncwarp(mask()); }
#define MR_TILE_SHUFFLE(name, of)                                                      \
  template <class T>                                                                   \
  static MR_INLINE auto name(T value, int by) {                                        \
    return mr_in_words(value, [by](auto word) { return of(mask(), word, by, Size); }); \
  }
  MR_TILE_SHUFFLE(shfl, __shfl_sync)
  MR_TILE_SHUFFLE(shfl_up, __shfl_up_sync)
  MR_TILE_SHUFFLE(shfl_down, __shfl_down_sync)
  MR_TILE_SHUFFLE(shfl_xor, __shfl_xor_sync)
#undef MR_TILE_SHUFFLE
  static MR_INLINE int any(int predicate) {
    return __any_sync(mask(), predicate);
  }
  static MR_INLINE int all(int predicate) {
    return __all_sync(mask(), predicate);
  }
  static MR_INLINE unsigned ballot(int predicate) {
    return (mr_ballot(mask(), 3, predicate != 0) & mask()) >> first();
  }
  template <class T>
  static MR_INLINE unsigned match_any(T value) {
    return (mr_match_any(mask(), 1, value) & mask()) >> first();
  }

 private:
  static MR_INLINE int first() {
    return static_cast<int>(mr_rank() / Size * Size % 32);
  }
  static MR_INLINE unsigned mask() {
    return (Size == 32 ? mr_all_lanes : (1u << Size % 32) - 1u) << first();
  }
};

template <unsigned Size, class Parent>
class thread_block_tile : public mr_tile_place<Size, Parent>, public mr_tile_threads<Size, (Size > 32)> {
  static_assert(Size >= 1 && Size <= 1024 && (Size & (Size - 1)) == 0,
                "The size of a tile is a power of 2 up to 1024.");

 public:
  thread_block_tile() = default;
  template <class Other>
  MR_INLINE thread_block_tile(const thread_block_tile<Size, Other>& tile) : mr_tile_place<Size, Parent>(tile) {}
  static MR_INLINE unsigned thread_rank() { return mr_rank() % Size; }
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
};
template <unsigned Size, class Parent>
MR_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

/// The lanes that were active together when the group was created.
class coalesced_group {
 public:
  MR_INLINE explicit coalesced_group(unsigned mask) : mask_(mask) {}
  MR_INLINE unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << (mr_rank() % 32)) - 1u)));
  }
  MR_INLINE unsigned num_threads() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  MR_INLINE unsigned size() const { return num_threads(); }
  MR_INLINE unsigned mr_mask() const { return mask_; }
  MR_INLINE void sync() const { __syncwarp(mask_); }
  template <class T>
  MR_INLINE auto shfl(T value, int rank) const {
    return mr_in_words(value,
                       [lanes = mask_, from = lane_of(rank)](auto word) { return __shfl_sync(lanes, word, from); });
  }
  template <class T>
  MR_INLINE auto shfl_up(T value, int by) const {
    return shfl(value, static_cast<int>(thread_rank()) < by ? static_cast<int>(thread_rank())
                                                            : static_cast<int>(thread_rank()) - by);
  }
  template <class T>
  MR_INLINE auto shfl_down(T value, int by) const {
    const int from = static_cast<int>(thread_rank()) + by;
    return shfl(value, from < static_cast<int>(num_threads()) ? from : static_cast<int>(thread_rank()));
  }
  MR_INLINE int any(int predicate) const { return __any_sync(mask_, predicate); }
  MR_INLINE int all(int predicate) const { return __all_sync(mask_, predicate); }
  /// Lanes are addressed by rank.
  MR_INLINE unsigned ballot(int predicate) const {
    const unsigned votes = mr_ballot(mask_, 4, predicate != 0);
    unsigned ranked = 0;
    int rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank) {
      ranked |= (votes >> __builtin_ctz(rest) & 1u) << rank;
    }
    return ranked;
  }

 private:
  MR_INLINE int lane_of(int rank) const {
    unsigned rest = mask_;
    for (int i = 0; i < rank && rest != 0; ++i) rest &= rest - 1;
    return rest == 0 ? static_cast<int>(mr_rank() % 32) : __builtin_ctz(rest);
  }

  unsigned mask_;
};
MR_INLINE coalesced_group coalesced_threads(unsigned site = __builtin_LINE()) {
  return coalesced_group(__activemask(site));
}

template <class Group>
MR_INLINE void sync(const Group& group) {
  group.sync();
}

#define MR_GROUP_OPERATION(name, expression)                      \
  template <class T>                                              \
  struct name {                                                   \
    MR_INLINE T operator()(T a, T b) const { return expression; } \
  };
MR_GROUP_OPERATION(plus, a + b)
MR_GROUP_OPERATION(less, b < a ? b : a)
MR_GROUP_OPERATION(greater, a < b ? b : a)
MR_GROUP_OPERATION(bit_and, a& b)
MR_GROUP_OPERATION(bit_or, a | b)
MR_GROUP_OPERATION(bit_xor, a ^ b)
#undef MR_GROUP_OPERATION

/// Every lane of the tile receives the same result.
template <unsigned Size, class Parent, class T, class Operation>
MR_INLINE T reduce(thread_block_tile<Size, Parent> tile, T value, Operation operation) {
  if constexpr (Size > 32) {
    return tile.mr_folded(value, operation);
  } else {
    for (int by = Size / 2; by > 0; by /= 2) {
      const T other = tile.shfl_xor(value, by);
      value = operation(value, other);
    }
    return value;
  }
}
template <class T, class Operation>
MR_INLINE T reduce(coalesced_group group, T value, Operation operation) {
  T sum = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = group.shfl(value, static_cast<int>(rank));
    sum = operation(sum, other);
  }
  return sum;
}

template <class Group>
MR_INLINE auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
MR_INLINE auto group_size(const Group& group) {
  return group.num_threads();
}

}  // namespace cooperative_groups
