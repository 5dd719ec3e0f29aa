// CUB's scans of blocks and warps: cub::BlockScan and cub::WarpScan.
#pragma once

#include "cub_common.h"
#include "cuda_functional.h"

template <class T, int Threads>
struct mr_scan_storage {
  /// Each thread's total, then what comes before the thread.
  mr_slots<T, Threads> of;
  mr_slots<T, 1> aggregate, seed;
};

template <class T>
T& mr_some();
template <class Op, class T, class = void>
inline constexpr bool mr_is_operator = false;
template <class Op, class T>
inline constexpr bool mr_is_operator<Op, T, decltype((void)mr_some<Op>()(mr_some<T>(), mr_some<T>()))> = true;

/// What every form of a scan does. Calls of the first warp's threads ask for the prefix, as in CUB; the first one's
/// result counts.
template <class T, class Crowd>
class mr_scan : public mr_collective<mr_scan_storage<T, Crowd::count>> {
  using Base = mr_collective<mr_scan_storage<T, Crowd::count>>;

 public:
  using Base::Base;
  MR_INLINE mr_scan() = default;

 protected:
  struct Nothing {
    static constexpr bool is_prefix = false;
    static MR_INLINE T of(const T& aggregate) { return aggregate; }
  };
  struct Initial {
    static constexpr bool is_prefix = true;
    T value;
    MR_INLINE T of(const T&) const { return value; }
  };
  template <class Call>
  struct Callback {
    static constexpr bool is_prefix = true;
    Call* call;
    MR_INLINE T of(const T& aggregate) const { return (*call)(aggregate); }
  };

  /// The items of a thread, or one value.
  template <int Items>
  struct Many {
    static constexpr int count = Items;
    const T* from;
    T* to;
    MR_INLINE T at(int k) const { return from[k]; }
  };
  struct One {
    static constexpr int count = 1;
    T value;
    T* to;
    MR_INLINE T at(int) const { return value; }
  };
  /// Makes the threads' totals what comes before each thread, from the second one on.
  template <class Op>
  static MR_INLINE void order(mr_scan_storage<T, Crowd::count>& storage, Op& op) {
    T running = storage.of[0];
    for (int at = 1; at < Crowd::count; ++at) {
      const T own = storage.of[at];
      storage.of[at] = running;
      running = op(running, own);
    }
    storage.aggregate[0] = running;
  }

  template <int Items>
  static MR_INLINE Many<Items> values(const T (&from)[Items], T (&to)[Items]) {
    return {from, to};
  }
  static MR_INLINE One values(const T& from, T& to) { return {from, &to}; }

  /// After the operator: nothing, the aggregate, or the call for the prefix.
  template <bool IsInclusive, class Values, class Op, class Prefix>
  MR_INLINE auto with(Values values, Op op, Prefix prefix) {
    return scan<IsInclusive>(values, op, prefix, nullptr);
  }
  template <bool IsInclusive, class Values, class Op, class Prefix>
  MR_INLINE auto with(Values values, Op op, Prefix prefix, T& aggregate) {
    return scan<IsInclusive>(values, op, prefix, &aggregate);
  }
  template <bool IsInclusive, class Values, class Op, class Prefix, class Call>
  MR_INLINE auto with(Values values, Op op, Prefix, Call& call) {
    return scan<IsInclusive>(values, op, Callback<Call>{&call}, nullptr);
  }
  /// The arguments after the output: an operator, or an initial value and an operator.
  template <bool IsInclusive, class Values, class First, class... More>
  MR_INLINE auto by(Values values, First& first, More&... more) {
    if constexpr (mr_is_operator<First, T>) {
      return with<IsInclusive>(values, first, Nothing{}, more...);
    } else {
      return from<IsInclusive>(values, static_cast<T>(first), more...);
    }
  }
  template <bool IsInclusive, class Values, class Op, class... More>
  MR_INLINE auto from(Values values, T initial, Op& op, More&... more) {
    return with<IsInclusive>(values, op, Initial{initial}, more...);
  }

 private:
  template <bool IsInclusive, class Values, class Op, class Prefix>
  MR_INLINE auto scan(Values values, Op op, Prefix prefix, T* aggregate) {
    auto* storage = this->storage;
    T total = values.at(0);
    for (int k = 1; k < Values::count; ++k) total = op(total, values.at(k));
    storage->of[Crowd::rank()] = total;
    return Crowd::then([=]() mutable {
      const int rank = Crowd::rank();
      if (rank == 0) order(*storage, op);
      if constexpr (Prefix::is_prefix) {
        if (rank < 32) {
          const T seed = prefix.of(storage->aggregate[0]);
          if (rank == 0) storage->seed[0] = seed;
        }
      }
      if (aggregate != nullptr) *aggregate = storage->aggregate[0];
      spread<IsInclusive, Prefix::is_prefix>(values, op, rank, *storage);
    });
  }

  template <bool IsInclusive, bool HasSeed, class Values, class Op>
  static MR_INLINE void spread(Values& values, Op& op, int rank, mr_scan_storage<T, Crowd::count>& storage) {
    int k = 0;
    T running;
    if (HasSeed) {
      running = rank == 0 ? storage.seed[0] : op(storage.seed[0], storage.of[rank]);
    } else if (rank > 0) {
      running = storage.of[rank];
    } else {
      // Nothing comes before the first item: an exclusive scan leaves its result as the item is.
      running = values.at(0);
      values.to[0] = running;
      k = 1;
    }
    for (; k < Values::count; ++k) {
      const T before = running;
      running = op(running, values.at(k));
      values.to[k] = IsInclusive ? running : before;
    }
  }
};

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

/// One value or an array of each thread, then what CUB takes: `(input, output, [operator], [aggregate or call])`, and
/// an initial value before the operator. Scans go in thread order, so floats may differ from CUB's in their last
/// digits.
template <class T, class Crowd>
class mr_scans : public mr_scan<T, Crowd> {
  using Base = mr_scan<T, Crowd>;

 public:
  using Base::Base;
  MR_INLINE mr_scans() = default;

  template <class In, class Out, class... More>
  MR_INLINE auto InclusiveSum(const In& input, Out& output, More&... more) {
    using Nothing = typename Base::Nothing;
    return this->template with<true>(this->values(input, output), ::cuda::std::plus<>{}, Nothing{}, more...);
  }
  template <class In, class Out, class... More>
  MR_INLINE auto ExclusiveSum(const In& input, Out& output, More&... more) {
    using Initial = typename Base::Initial;
    return this->template with<false>(this->values(input, output), ::cuda::std::plus<>{}, Initial{T{}}, more...);
  }
  template <class In, class Out, class... More>
  MR_INLINE auto InclusiveScan(const In& input, Out& output, More&&... more) {
    return this->template by<true>(this->values(input, output), more...);
  }
  template <class In, class Out, class... More>
  MR_INLINE auto ExclusiveScan(const In& input, Out& output, More&&... more) {
    return this->template by<false>(this->values(input, output), more...);
  }
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 0>
class BlockScan : public mr_scans<T, mr_whole_block<X * Y * Z>> {
 public:
  using mr_scans<T, mr_whole_block<X * Y * Z>>::mr_scans;
  MR_INLINE BlockScan() = default;
};

template <class T, int Threads = 32, int Arch = 0>
class WarpScan : public mr_scans<T, mr_logical_warp<Threads>> {
  using Crowd = mr_logical_warp<Threads>;

 public:
  using mr_scans<T, Crowd>::mr_scans;
  MR_INLINE WarpScan() = default;

  template <class Op>
  MR_INLINE auto Scan(T input, T& inclusive, T& exclusive, Op op) {
    return both(input, inclusive, exclusive, op);
  }
  template <class Op>
  MR_INLINE auto Scan(T input, T& inclusive, T& exclusive, T initial, Op op) {
    return both(input, inclusive, exclusive, op, &initial);
  }
  MR_INLINE auto Broadcast(T input, unsigned lane) {
    auto* storage = this->storage;
    if (Crowd::rank() == static_cast<int>(lane)) storage->seed[0] = input;
    return Crowd::then([storage] { return storage->seed[0]; });
  }

 private:
  template <class Op>
  MR_INLINE auto both(T input, T& inclusive, T& exclusive, Op op, const T* initial = nullptr) {
    auto* storage = this->storage;
    storage->of[Crowd::rank()] = input;
    const bool has_seed = initial != nullptr;
    const T seed = has_seed ? *initial : input;
    return Crowd::then([=, to = &inclusive, before = &exclusive]() mutable {
      const int rank = Crowd::rank();
      if (rank == 0) WarpScan::order(*storage, op);
      if (rank == 0) {
        *before = seed;
      } else {
        *before = has_seed ? op(seed, storage->of[rank]) : storage->of[rank];
      }
      *to = rank == 0 && !has_seed ? input : op(*before, input);
    });
  }
};

}  // namespace cub
