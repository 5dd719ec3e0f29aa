// CUB's reductions of blocks and warps: cub::BlockReduce and cub::WarpReduce.
#pragma once

#include "cub_common.h"
#include "cuda_functional.h"

/// Folds values as a warp does with shuffles, in place: pairs at distance 1, then at 2, 4, ...
template <class T, class Op>
MR_INLINE void mr_fold_tree(T* values, int count, Op& op) {
  for (int by = 1; by < count; by *= 2) {
    for (int at = 0; at + by < count; at += 2 * by) values[at] = op(values[at], values[at + by]);
  }
}
template <class T, int Items, class Op>
MR_INLINE T mr_fold_items(T (&items)[Items], Op& op) {
  T sum = items[0];
  for (int k = 1; k < Items; ++k) sum = op(sum, items[k]);
  return sum;
}

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

/// The first thread gets the result, computed in the order of CUB's algorithm: in each warp as a tree and then warp by
/// warp, or for raking segment by segment and then as a tree. Other threads get their own value.
template <class T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int Arch = 0>
class BlockReduce : public mr_collective<mr_slots<T, X * Y * Z>> {
  using Base = mr_collective<mr_slots<T, X * Y * Z>>;
  using Crowd = mr_whole_block<X * Y * Z>;

 public:
  using Base::Base;
  MR_INLINE BlockReduce() = default;

  template <class Op>
  MR_INLINE auto Reduce(T input, Op op, int valid = Crowd::count) {
    auto* slots = this->storage;
    (*slots)[Crowd::rank()] = input;
    return Crowd::then([slots, op, valid]() mutable {
      const int rank = Crowd::rank();
      if (rank == 0) fold(&(*slots)[0], valid < Crowd::count ? valid : Crowd::count, op);
      return (*slots)[rank];
    });
  }
  template <int Items, class Op>
  MR_INLINE auto Reduce(T (&inputs)[Items], Op op) {
    return Reduce(mr_fold_items(inputs, op), op);
  }
  MR_INLINE auto Sum(T input) { return Reduce(input, ::cuda::std::plus<>{}); }
  MR_INLINE auto Sum(T input, int valid) { return Reduce(input, ::cuda::std::plus<>{}, valid); }
  template <int Items>
  MR_INLINE auto Sum(T (&inputs)[Items]) {
    return Reduce(inputs, ::cuda::std::plus<>{});
  }

 private:
  template <class Op>
  static MR_INLINE void fold(T* values, int count, Op& op) {
    constexpr bool is_raking = Algorithm <= BLOCK_REDUCE_RAKING;
    constexpr int segment = is_raking ? (Crowd::count + 31) / 32 : 32;
    int parts = 0;
    for (int from = 0; from < count; from += segment, ++parts) {
      T* part = values + from;
      const int size = count - from < segment ? count - from : segment;
      if constexpr (is_raking) {
        for (int at = 1; at < size; ++at) part[0] = op(part[0], part[at]);
        values[parts] = part[0];
      } else {
        mr_fold_tree(part, size, op);
        if (parts > 0) values[0] = op(values[0], part[0]);
      }
    }
    if constexpr (is_raking) mr_fold_tree(values, parts, op);
  }
};

/// The first lane of a logical warp gets the result. Other lanes get their own value, or that of their segment if they
/// begin one.
template <class T, int Threads = 32, int Arch = 0>
class WarpReduce : public mr_collective<mr_slots<T, Threads>> {
  using Base = mr_collective<mr_slots<T, Threads>>;
  using Crowd = mr_logical_warp<Threads>;

 public:
  using Base::Base;
  MR_INLINE WarpReduce() = default;

  template <class Op>
  MR_INLINE auto Reduce(T input, Op op, int valid = Threads) {
    auto* slots = this->storage;
    (*slots)[Crowd::rank()] = input;
    return Crowd::then([slots, op, valid]() mutable {
      const int rank = Crowd::rank();
      if (rank == 0) mr_fold_tree(&(*slots)[0], valid < Threads ? valid : Threads, op);
      return (*slots)[rank];
    });
  }
  template <int Items, class Op>
  MR_INLINE auto Reduce(T (&inputs)[Items], Op op) {
    return Reduce(mr_fold_items(inputs, op), op);
  }
  MR_INLINE auto Sum(T input) { return Reduce(input, ::cuda::std::plus<>{}); }
  MR_INLINE auto Sum(T input, int valid) { return Reduce(input, ::cuda::std::plus<>{}, valid); }
  template <int Items>
  MR_INLINE auto Sum(T (&inputs)[Items]) {
    return Reduce(inputs, ::cuda::std::plus<>{});
  }
  MR_INLINE auto Max(T input) { return Reduce(input, ::cuda::maximum<>{}); }
  MR_INLINE auto Min(T input) { return Reduce(input, ::cuda::minimum<>{}); }

  template <class Flag, class Op>
  MR_INLINE auto HeadSegmentedReduce(T input, Flag flag, Op op) {
    return segmented<true>(input, flag != 0, op);
  }
  template <class Flag, class Op>
  MR_INLINE auto TailSegmentedReduce(T input, Flag flag, Op op) {
    return segmented<false>(input, flag != 0, op);
  }
  template <class Flag>
  MR_INLINE auto HeadSegmentedSum(T input, Flag flag) {
    return segmented<true>(input, flag != 0, ::cuda::std::plus<>{});
  }
  template <class Flag>
  MR_INLINE auto TailSegmentedSum(T input, Flag flag) {
    return segmented<false>(input, flag != 0, ::cuda::std::plus<>{});
  }

 private:
  /// Every lane folds from itself to the end of its segment; a ballot tells the flags.
  template <bool IsHead, class Op>
  MR_INLINE auto segmented(T input, bool flag, Op op) {
    auto* slots = this->storage;
    const int rank = Crowd::rank();
    (*slots)[rank] = input;
    const int shift = Crowd::lane() - rank;
    const unsigned flags = mr_ballot(Crowd::mask(), 5, flag) >> shift;
    if (rank == 0) {
      for (int at = Threads - 2; at >= 0; --at) {
        if ((flags >> (IsHead ? at + 1 : at) & 1) == 0) (*slots)[at] = op((*slots)[at], (*slots)[at + 1]);
      }
    }
    return (*slots)[rank];
  }
};

}  // namespace cub
