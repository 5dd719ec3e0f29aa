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
  static MR_INLINE mr_syncthreads sync() { return {}; }
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

/// A block barrier at which the block also waits for the other blocks.
struct [[nodiscard]] mr_sync_grid : mr_syncthreads {
  template <class Promise>
  MR_INLINE void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    mr_syncthreads::await_suspend(self);
    self.promise().thread->barrier->is_of_grid = true;
  }
};
/// Without a cooperative launch, blocks may not run concurrently: the launch then fails like an assertion on line 0.
MR_INLINE mr_sync_grid mr_await_grid() {
  if (mr_launch_of_block->wait_for_grid == nullptr) {
#if defined(MR_ASSERTING)
    mr_assertion_failed(0, blockIdx, threadIdx);
#else
    __builtin_trap();
#endif
  }
  return {};
}

class grid_group {
 public:
  struct arrival_token {};
  static MR_INLINE bool is_valid() { return mr_launch_of_block->wait_for_grid != nullptr; }
  static MR_INLINE mr_sync_grid sync() { return mr_await_grid(); }
  /// Arriving does nothing: barrier_wait returns when all threads have called it.
  static MR_INLINE arrival_token barrier_arrive() { return {}; }
  static MR_INLINE mr_sync_grid barrier_wait(arrival_token&&) { return mr_await_grid(); }
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

/// Exchanges a value of more than 64 bits, word by word.
template <class T, class Exchange>
mr_dco<T> mr_in_words(T value, Exchange exchange) {
  unsigned long long words[(sizeof(T) + 7) / 8] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned long long& word : words) word = co_await exchange(word);
  __builtin_memcpy(&value, words, sizeof(T));
  co_return value;
}

/// A ballot of some lanes, shifted so that the first of them is bit 0.
struct mr_finish_shifted {
  unsigned mask;
  int first;
  MR_INLINE unsigned operator()(unsigned long long ballot) const {
    return (static_cast<unsigned>(ballot) & mask) >> first;
  }
};

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
  static MR_INLINE auto sync() { return __syncwarp(mask()); }
#define MR_TILE_SHUFFLE(name, of)                                                                                     \
  template <class T>                                                                                                  \
  static MR_INLINE auto name(T value, int by) {                                                                       \
    if constexpr (sizeof(T) > 8) {                                                                                    \
      return mr_in_words(value, [lanes = mask(), by](unsigned long long word) { return of(lanes, word, by, Size); }); \
    } else {                                                                                                          \
      return of(mask(), value, by, Size);                                                                             \
    }                                                                                                                 \
  }
  MR_TILE_SHUFFLE(shfl, __shfl_sync)
  MR_TILE_SHUFFLE(shfl_up, __shfl_up_sync)
  MR_TILE_SHUFFLE(shfl_down, __shfl_down_sync)
  MR_TILE_SHUFFLE(shfl_xor, __shfl_xor_sync)
#undef MR_TILE_SHUFFLE
  static MR_INLINE auto any(int predicate) {
    return __any_sync(mask(), predicate);
  }
  static MR_INLINE auto all(int predicate) {
    return __all_sync(mask(), predicate);
  }
  static MR_INLINE auto ballot(int predicate) {
    return mr_ask(mr_warp_call::ballot, mask(), 3, predicate != 0, 0, mr_finish_shifted{mask(), first()});
  }
  template <class T>
  static MR_INLINE auto match_any(T value) {
    using Value = typename mr_shuffled<T>::type;
    return mr_ask(mr_warp_call::match_any, mask(), 1, mr_bits_of(static_cast<Value>(value)), 0,
                  mr_finish_shifted{mask(), first()});
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
  MR_INLINE auto sync() const { return __syncwarp(mask_); }
  template <class T>
  MR_INLINE auto shfl(T value, int rank) const {
    if constexpr (sizeof(T) > 8) {
      return mr_in_words(value, [lanes = mask_, from = lane_of(rank)](unsigned long long word) {
        return __shfl_sync(lanes, word, from);
      });
    } else {
      return __shfl_sync(mask_, value, lane_of(rank));
    }
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
  MR_INLINE auto any(int predicate) const { return __any_sync(mask_, predicate); }
  MR_INLINE auto all(int predicate) const { return __all_sync(mask_, predicate); }
  /// Lanes of a group, addressed by rank.
  struct Ranked {
    unsigned mask;
    MR_INLINE unsigned operator()(unsigned long long ballot) const {
      unsigned ranked = 0;
      int rank = 0;
      for (unsigned rest = mask; rest != 0; rest &= rest - 1, ++rank) {
        ranked |= (static_cast<unsigned>(ballot) >> __builtin_ctz(rest) & 1u) << rank;
      }
      return ranked;
    }
  };
  MR_INLINE auto ballot(int predicate) const {
    return mr_ask(mr_warp_call::ballot, mask_, 4, predicate != 0, 0, Ranked{mask_});
  }

 private:
  MR_INLINE int lane_of(int rank) const {
    unsigned rest = mask_;
    for (int i = 0; i < rank && rest != 0; ++i) rest &= rest - 1;
    return rest == 0 ? static_cast<int>(mr_rank() % 32) : __builtin_ctz(rest);
  }

  unsigned mask_;
};
struct mr_finish_coalesced {
  MR_INLINE coalesced_group operator()(unsigned long long mask) const {
    return coalesced_group(static_cast<unsigned>(mask));
  }
};
MR_INLINE auto coalesced_threads(unsigned site = __builtin_LINE()) {
  return mr_ask(mr_warp_call::active, mr_all_lanes, site, 0, 0, mr_finish_coalesced{});
}

template <class Group>
MR_INLINE auto sync(const Group& group) {
  return group.sync();
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
mr_dco<T> reduce(thread_block_tile<Size, Parent> tile, T value, Operation operation) {
  if constexpr (Size > 32) {
    co_return co_await tile.mr_folded(value, operation);
  } else {
    for (int by = Size / 2; by > 0; by /= 2) {
      const T other = co_await tile.shfl_xor(value, by);
      value = operation(value, other);
    }
    co_return value;
  }
}
template <class T, class Operation>
mr_dco<T> reduce(coalesced_group group, T value, Operation operation) {
  T sum = co_await group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = co_await group.shfl(value, static_cast<int>(rank));
    sum = operation(sum, other);
  }
  co_return sum;
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
