// CUB's sorts and histograms of a block: cub::BlockRadixSort, cub::BlockMergeSort and cub::BlockHistogram.
#pragma once

#include "atomics.h"
#include "cub_exchange.h"
#include "cub_scan.h"

/// The order of a tile's items, and room to find it. Of a type without members, values take one byte.
template <class Key, class Value, int Count>
struct mr_sort_storage {
  mr_slots<Key, Count> keys;
  mr_slots<Value, mr_is_same<Value, cub::NullType> ? 1 : Count> values;
  unsigned order[Count], scratch[Count];
};

/// Sorts `order` by merging runs: equal items keep their order.
template <class Less>
MR_INLINE void mr_merge_sort(unsigned* order, unsigned* scratch, int count, Less less) {
  for (int at = 0; at < count; ++at) order[at] = static_cast<unsigned>(at);
  for (int width = 1; width < count; width *= 2) {
    for (int from = 0; from < count; from += 2 * width) {
      const int middle = from + width < count ? from + width : count;
      const int end = from + 2 * width < count ? from + 2 * width : count;
      for (int a = from, b = middle, to = from; to < end; ++to) {
        const bool takes_second = a == middle || (b < end && less(order[b], order[a]));
        scratch[to] = takes_second ? order[b++] : order[a++];
      }
    }
    for (int at = 0; at < count; ++at) order[at] = scratch[at];
  }
}

/// What the sorts share: items go into the tile, the first thread orders it, and each thread takes its items.
template <class Key, int Threads, int Items, class Value>
class mr_sort : public mr_collective<mr_sort_storage<Key, Value, Threads * Items>> {
  using Base = mr_collective<mr_sort_storage<Key, Value, Threads * Items>>;

 protected:
  using Crowd = mr_whole_block<Threads>;
  using Blocked = mr_blocked<Threads, Items>;
  using Striped = mr_striped<Threads, Items>;

 public:
  using Base::Base;
  MR_INLINE mr_sort() = default;

 protected:
  template <class To, class Less>
  MR_INLINE auto sort(Key (&keys)[Items], Value* values, int valid, Less less) {
    auto* storage = this->storage;
    for (int k = 0; k < Items; ++k) {
      const int place = Blocked::place(Crowd::rank(), k);
      storage->keys[place] = keys[k];
      if (values != nullptr) storage->values[place] = values[k];
    }
    return Crowd::then([=, keys = &keys[0]]() mutable {
      const int rank = Crowd::rank();
      if (rank == 0) {
        mr_merge_sort(storage->order, storage->scratch, valid, [&](unsigned a, unsigned b) {
          return less(storage->keys[static_cast<int>(a)], storage->keys[static_cast<int>(b)]);
        });
      }
      for (int k = 0; k < Items; ++k) {
        const int place = To::place(rank, k);
        if (place >= valid) continue;
        const int from = static_cast<int>(storage->order[place]);
        keys[k] = storage->keys[from];
        if (values != nullptr) values[k] = storage->values[from];
      }
    });
  }
};

template <unsigned Bytes>
struct mr_radix_bits {
  using type = unsigned long long;
};
template <>
struct mr_radix_bits<1> {
  using type = unsigned char;
};
template <>
struct mr_radix_bits<2> {
  using type = unsigned short;
};
template <>
struct mr_radix_bits<4> {
  using type = unsigned;
};

/// The bits of a key [begin, end) as a number of the same order. -0 is 0, as in CUB.
template <class Key>
MR_INLINE auto mr_radix_of(Key key, int begin, int end) {
  static_assert(sizeof(Key) <= 8, "Keys of a radix sort are numbers.");
  using Bits = typename mr_radix_bits<sizeof(Key)>::type;
  constexpr int width = 8 * sizeof(Key);
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (width - 1));
  constexpr bool is_float = Key(0.5) * 2 == 1;
  Bits bits;
  __builtin_memcpy(&bits, &key, sizeof(Key));
  if constexpr (is_float) {
    if (bits == sign) bits = 0;
    bits = static_cast<Bits>(bits & sign ? ~bits : bits ^ sign);
  } else if constexpr (Key(-1) < Key(0)) {
    bits = static_cast<Bits>(bits ^ sign);
  }
  bits = static_cast<Bits>(bits >> begin);
  return end - begin < width ? static_cast<Bits>(bits & ((1ull << (end - begin)) - 1)) : bits;
}

namespace cub {

template <class Key, int X, int Items, class Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1, int Arch = 0>
class BlockRadixSort : public mr_sort<Key, X * Y * Z, Items, Value> {
  using Base = mr_sort<Key, X * Y * Z, Items, Value>;
  static constexpr int width = 8 * sizeof(Key);
  static constexpr int count = X * Y * Z * Items;

 public:
  using Base::Base;
  MR_INLINE BlockRadixSort() = default;

#define MR_RADIX_SORT(name, To, is_descending)                                                            \
  MR_INLINE auto name(Key(&keys)[Items], int begin_bit = 0, int end_bit = width) {                        \
    return by<typename Base::To, is_descending>(keys, nullptr, begin_bit, end_bit);                       \
  }                                                                                                       \
  MR_INLINE auto name(Key(&keys)[Items], Value(&values)[Items], int begin_bit = 0, int end_bit = width) { \
    return by<typename Base::To, is_descending>(keys, &values[0], begin_bit, end_bit);                    \
  }
  MR_RADIX_SORT(Sort, Blocked, false)
  MR_RADIX_SORT(SortDescending, Blocked, true)
  MR_RADIX_SORT(SortBlockedToStriped, Striped, false)
  MR_RADIX_SORT(SortDescendingBlockedToStriped, Striped, true)
#undef MR_RADIX_SORT

 private:
  template <class To, bool IsDescending>
  MR_INLINE auto by(Key (&keys)[Items], Value* values, int begin, int end) {
    return this->template sort<To>(keys, values, count, [begin, end](const Key& a, const Key& b) {
      const auto first = mr_radix_of(a, begin, end), second = mr_radix_of(b, begin, end);
      return IsDescending ? second < first : first < second;
    });
  }
};

template <class Key, int X, int Items, class Value = NullType, int Y = 1, int Z = 1>
class BlockMergeSort : public mr_sort<Key, X * Y * Z, Items, Value> {
  using Base = mr_sort<Key, X * Y * Z, Items, Value>;
  using Blocked = typename Base::Blocked;
  static constexpr int count = X * Y * Z * Items;

 public:
  using Base::Base;
  MR_INLINE BlockMergeSort() = default;

#define MR_MERGE_SORT(name)                                                                  \
  template <class Less>                                                                      \
  MR_INLINE auto name(Key(&keys)[Items], Less less) {                                        \
    return this->template sort<Blocked>(keys, nullptr, count, less);                         \
  }                                                                                          \
  template <class Less>                                                                      \
  MR_INLINE auto name(Key(&keys)[Items], Value(&values)[Items], Less less) {                 \
    return this->template sort<Blocked>(keys, &values[0], count, less);                      \
  }                                                                                          \
  template <class Less>                                                                      \
  MR_INLINE auto name(Key(&keys)[Items], Less less, int valid, Key) {                        \
    return this->template sort<Blocked>(keys, nullptr, valid, less);                         \
  }                                                                                          \
  template <class Less>                                                                      \
  MR_INLINE auto name(Key(&keys)[Items], Value(&values)[Items], Less less, int valid, Key) { \
    return this->template sort<Blocked>(keys, &values[0], valid, less);                      \
  }
  MR_MERGE_SORT(Sort)
  MR_MERGE_SORT(StableSort)
#undef MR_MERGE_SORT
};

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int X, int Items, int Bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int Y = 1, int Z = 1,
          int Arch = 0>
class BlockHistogram : public mr_collective<NullType> {
  using Crowd = mr_whole_block<X * Y * Z>;

 public:
  using mr_collective<NullType>::mr_collective;
  MR_INLINE BlockHistogram() = default;

  template <class Counter>
  MR_INLINE void InitHistogram(Counter (&histogram)[Bins]) {
    for (int bin = Crowd::rank(); bin < Bins; bin += Crowd::count) histogram[bin] = 0;
  }
  template <class Counter>
  MR_INLINE void Composite(T (&items)[Items], Counter (&histogram)[Bins]) {
    for (T item : items) __atomic_fetch_add(&histogram[item], Counter{1}, __ATOMIC_RELAXED);
  }
  template <class Counter>
  MR_INLINE auto Histogram(T (&items)[Items], Counter (&histogram)[Bins]) {
    InitHistogram(histogram);
    return Crowd::then(
        [self = *this, items = &items, histogram = &histogram]() mutable { self.Composite(*items, *histogram); });
  }
};

}  // namespace cub
