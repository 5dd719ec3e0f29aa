// CUB's exchanges between the threads of a block: cub::BlockExchange, cub::BlockShuffle, cub::BlockDiscontinuity
// and cub::BlockAdjacentDifference.
#pragma once

#include "cub_common.h"

/// The place in the tile of a thread's k-th item, in each arrangement.
template <int Threads, int Items>
struct mr_blocked {
  static MR_INLINE int place(int rank, int k) { return rank * Items + k; }
};
template <int Threads, int Items>
struct mr_striped {
  static MR_INLINE int place(int rank, int k) { return k * Threads + rank; }
};
template <int Threads, int Items>
struct mr_warp_striped {
  static MR_INLINE int place(int rank, int k) {
    const int from = rank / 32 * 32;
    const int lanes = Threads - from < 32 ? Threads - from : 32;
    return from * Items + k * lanes + rank % 32;
  }
};

namespace cub {

template <class T, int X, int Items, bool = false, int Y = 1, int Z = 1, int Arch = 0>
class BlockExchange : public mr_collective<mr_slots<T, X * Y * Z * Items>> {
  static constexpr int threads = X * Y * Z;
  using Base = mr_collective<mr_slots<T, threads * Items>>;
  using Crowd = mr_whole_block<threads>;
  using Blocked = mr_blocked<threads, Items>;
  using Striped = mr_striped<threads, Items>;
  using WarpStriped = mr_warp_striped<threads, Items>;

 public:
  using Base::Base;
  MR_INLINE BlockExchange() = default;

#define MR_EXCHANGE(name, From, To)                                  \
  template <class Out>                                               \
  MR_INLINE auto name(const T(&input)[Items], Out(&output)[Items]) { \
    return move<From, To>(input, output);                            \
  }                                                                  \
  MR_INLINE auto name(T(&items)[Items]) { return move<From, To>(items, items); }
  MR_EXCHANGE(StripedToBlocked, Striped, Blocked)
  MR_EXCHANGE(BlockedToStriped, Blocked, Striped)
  MR_EXCHANGE(WarpStripedToBlocked, WarpStriped, Blocked)
  MR_EXCHANGE(BlockedToWarpStriped, Blocked, WarpStriped)
#undef MR_EXCHANGE

#define MR_SCATTER(name, To)                                                                \
  template <class Out, class Offset>                                                        \
  MR_INLINE auto name(const T(&input)[Items], Out(&output)[Items], Offset(&ranks)[Items]) { \
    for (int k = 0; k < Items; ++k) put(ranks[k], input[k]);                                \
    return take<To>(output);                                                                \
  }                                                                                         \
  template <class Offset>                                                                   \
  MR_INLINE auto name(T(&items)[Items], Offset(&ranks)[Items]) {                            \
    return name(items, items, ranks);                                                       \
  }
  MR_SCATTER(ScatterToBlocked, Blocked)
  MR_SCATTER(ScatterToStriped, Striped)
  /// Negative ranks are left out.
  MR_SCATTER(ScatterToStripedGuarded, Striped)
#undef MR_SCATTER
  template <class Out, class Offset, class Flag>
  MR_INLINE auto ScatterToStripedFlagged(const T (&input)[Items], Out (&output)[Items], Offset (&ranks)[Items],
                                         Flag (&is_valid)[Items]) {
    for (int k = 0; k < Items; ++k) {
      if (is_valid[k]) put(ranks[k], input[k]);
    }
    return take<Striped>(output);
  }

 private:
  MR_INLINE void put(int place, const T& item) {
    if (place >= 0 && place < threads * Items) (*this->storage)[place] = item;
  }
  template <class To, class Out>
  MR_INLINE auto take(Out (&output)[Items]) {
    return Crowd::then([storage = this->storage, to = &output[0]] {
      for (int k = 0; k < Items; ++k) to[k] = static_cast<Out>((*storage)[To::place(Crowd::rank(), k)]);
    });
  }
  template <class From, class To, class Out>
  MR_INLINE auto move(const T (&input)[Items], Out (&output)[Items]) {
    for (int k = 0; k < Items; ++k) put(From::place(Crowd::rank(), k), input[k]);
    return take<To>(output);
  }
};

/// Values of threads at a distance.
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0>
class BlockShuffle : public mr_collective<mr_slots<T, X * Y * Z>> {
  static constexpr int threads = X * Y * Z;
  using Base = mr_collective<mr_slots<T, threads>>;
  using Crowd = mr_whole_block<threads>;

 public:
  using Base::Base;
  MR_INLINE BlockShuffle() = default;

  MR_INLINE auto Offset(T input, T& output, int distance = 1) {
    const int from = Crowd::rank() + distance;
    return take(input, output, from, from >= 0 && from < threads);
  }
  MR_INLINE auto Rotate(T input, T& output, unsigned distance = 1) {
    return take(input, output, static_cast<int>((static_cast<unsigned>(Crowd::rank()) + distance) % threads), true);
  }
  template <int Items>
  MR_INLINE auto Up(T (&input)[Items], T (&before)[Items]) {
    const T last = input[Items - 1];
    for (int k = Items - 1; k > 0; --k) before[k] = input[k - 1];
    return take(last, before[0], Crowd::rank() - 1, Crowd::rank() > 0);
  }
  template <int Items>
  MR_INLINE auto Down(T (&input)[Items], T (&after)[Items]) {
    const T first = input[0];
    for (int k = 0; k + 1 < Items; ++k) after[k] = input[k + 1];
    return take(first, after[Items - 1], Crowd::rank() + 1, Crowd::rank() + 1 < threads);
  }

 private:
  MR_INLINE auto take(T input, T& output, int from, bool is_there) {
    auto* slots = this->storage;
    (*slots)[Crowd::rank()] = input;
    return Crowd::then([slots, to = &output, from, is_there] {
      if (is_there) *to = (*slots)[from];
    });
  }
};

/// Flags of items that differ from their neighbours.
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0>
class BlockDiscontinuity : public mr_collective<mr_slots<T, X * Y * Z>> {
  static constexpr int threads = X * Y * Z;
  using Base = mr_collective<mr_slots<T, threads>>;
  using Crowd = mr_whole_block<threads>;

 public:
  using Base::Base;
  MR_INLINE BlockDiscontinuity() = default;

  template <int Items, class Flag, class Op>
  MR_INLINE auto FlagHeads(Flag (&flags)[Items], T (&items)[Items], Op op) {
    return flag<true>(flags, items, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  MR_INLINE auto FlagHeads(Flag (&flags)[Items], T (&items)[Items], Op op, T before_tile) {
    return flag<true>(flags, items, op, &before_tile);
  }
  template <int Items, class Flag, class Op>
  MR_INLINE auto FlagTails(Flag (&flags)[Items], T (&items)[Items], Op op) {
    return flag<false>(flags, items, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  MR_INLINE auto FlagTails(Flag (&flags)[Items], T (&items)[Items], Op op, T after_tile) {
    return flag<false>(flags, items, op, &after_tile);
  }

 private:
  template <bool IsHead, int Items, class Flag, class Op>
  MR_INLINE auto flag(Flag (&flags)[Items], T (&items)[Items], Op op, const T* outside) {
    auto* slots = this->storage;
    (*slots)[Crowd::rank()] = items[IsHead ? Items - 1 : 0];
    const bool has_outside = outside != nullptr;
    const T beyond = has_outside ? *outside : items[0];
    return Crowd::then([=, of = &items[0], to = &flags[0]]() mutable {
      const int rank = Crowd::rank();
      const bool is_last = rank == (IsHead ? 0 : threads - 1);
      const T neighbour = is_last ? beyond : (*slots)[IsHead ? rank - 1 : rank + 1];
      for (int k = 0; k < Items; ++k) {
        const bool is_edge = k == (IsHead ? 0 : Items - 1);
        const T& other = is_edge ? neighbour : of[IsHead ? k - 1 : k + 1];
        const bool differs = IsHead ? op(other, of[k]) : op(of[k], other);
        to[k] = static_cast<Flag>(is_edge && is_last && !has_outside ? true : differs);
      }
    });
  }
};

/// What an operator makes of items and their neighbours.
template <class T, int X, int Y = 1, int Z = 1, int Arch = 0>
class BlockAdjacentDifference : public mr_collective<mr_slots<T, X * Y * Z>> {
  static constexpr int threads = X * Y * Z;
  using Base = mr_collective<mr_slots<T, threads>>;
  using Crowd = mr_whole_block<threads>;

 public:
  using Base::Base;
  MR_INLINE BlockAdjacentDifference() = default;

  template <int Items, class Out, class Op>
  MR_INLINE auto SubtractLeft(T (&items)[Items], Out (&output)[Items], Op op) {
    return subtract<true>(items, output, op, nullptr);
  }
  template <int Items, class Out, class Op>
  MR_INLINE auto SubtractLeft(T (&items)[Items], Out (&output)[Items], Op op, T before_tile) {
    return subtract<true>(items, output, op, &before_tile);
  }
  template <int Items, class Out, class Op>
  MR_INLINE auto SubtractRight(T (&items)[Items], Out (&output)[Items], Op op) {
    return subtract<false>(items, output, op, nullptr);
  }
  template <int Items, class Out, class Op>
  MR_INLINE auto SubtractRight(T (&items)[Items], Out (&output)[Items], Op op, T after_tile) {
    return subtract<false>(items, output, op, &after_tile);
  }

 private:
  /// The tile's first or last item stays without a neighbour. Goes from the far end, since the output may be the items.
  template <bool IsLeft, int Items, class Out, class Op>
  MR_INLINE auto subtract(T (&items)[Items], Out (&output)[Items], Op op, const T* outside) {
    auto* slots = this->storage;
    (*slots)[Crowd::rank()] = items[IsLeft ? Items - 1 : 0];
    const bool has_outside = outside != nullptr;
    const T beyond = has_outside ? *outside : items[0];
    return Crowd::then([=, of = &items[0], to = &output[0]]() mutable {
      const int rank = Crowd::rank();
      const bool is_last = rank == (IsLeft ? 0 : threads - 1);
      const T neighbour = is_last ? beyond : (*slots)[IsLeft ? rank - 1 : rank + 1];
      for (int n = 0; n < Items; ++n) {
        const int k = IsLeft ? Items - 1 - n : n;
        const bool is_edge = n == Items - 1;
        const T own = of[k];
        if (is_edge && is_last && !has_outside) {
          to[k] = own;
        } else {
          to[k] = op(own, is_edge ? neighbour : of[IsLeft ? k - 1 : k + 1]);
        }
      }
    });
  }
};

}  // namespace cub
