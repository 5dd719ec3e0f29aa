// CUB's loads and stores of a block's or a warp's tile. They do not wait: without shared memory in between, every
// algorithm moves the same items.
#pragma once

#include "cub_common.h"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier, class Iterator>
MR_INLINE auto ThreadLoad(Iterator at) {
  return *at;
}
template <CacheStoreModifier, class Iterator, class T>
MR_INLINE void ThreadStore(Iterator at, T value) {
  *at = value;
}

}  // namespace cub

/// The items of a thread are `stride` apart, from its first one on.
template <int Items, class Iterator, class T>
MR_INLINE void mr_load_items(Iterator from, T (&items)[Items], int first, int stride, int valid) {
  for (int k = 0; k < Items; ++k) {
    if (first + k * stride < valid) items[k] = static_cast<T>(from[first + k * stride]);
  }
}
template <int Items, class Iterator, class T>
MR_INLINE void mr_store_items(Iterator to, T (&items)[Items], int first, int stride, int valid) {
  for (int k = 0; k < Items; ++k) {
    if (first + k * stride < valid) to[first + k * stride] = items[k];
  }
}
static constexpr int mr_all_items = __INT_MAX__;

/// The methods of loads and stores of one crowd.
template <class T, int Items, class Crowd, bool IsStriped>
class mr_tile : public mr_collective<cub::NullType> {
  static MR_INLINE int first() { return IsStriped ? Crowd::rank() : Crowd::rank() * Items; }
  static constexpr int stride = IsStriped ? Crowd::count : 1;

 public:
  using mr_collective<cub::NullType>::mr_collective;
  MR_INLINE mr_tile() = default;

  template <class Iterator>
  MR_INLINE void Load(Iterator from, T (&items)[Items], int valid = mr_all_items) {
    mr_load_items(from, items, first(), stride, valid);
  }
  template <class Iterator, class Default>
  MR_INLINE void Load(Iterator from, T (&items)[Items], int valid, Default otherwise) {
    for (T& item : items) item = static_cast<T>(otherwise);
    Load(from, items, valid);
  }
  template <class Iterator>
  MR_INLINE void Store(Iterator to, T (&items)[Items], int valid = mr_all_items) {
    mr_store_items(to, items, first(), stride, valid);
  }
};

namespace cub {

#define MR_TILE_CLASS(name, Algorithm, direct, striped)                                              \
  template <class T, int X, int Items, Algorithm Which = direct, int Y = 1, int Z = 1, int Arch = 0> \
  class name : public mr_tile<T, Items, mr_whole_block<X * Y * Z>, Which == striped> {               \
   public:                                                                                           \
    using mr_tile<T, Items, mr_whole_block<X * Y * Z>, Which == striped>::mr_tile;                   \
    MR_INLINE name() = default;                                                                      \
  };
MR_TILE_CLASS(BlockLoad, BlockLoadAlgorithm, BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED)
MR_TILE_CLASS(BlockStore, BlockStoreAlgorithm, BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED)
#undef MR_TILE_CLASS
#define MR_TILE_CLASS(name, Algorithm, direct, striped)                                   \
  template <class T, int Items, Algorithm Which = direct, int Threads = 32, int Arch = 0> \
  class name : public mr_tile<T, Items, mr_logical_warp<Threads>, Which == striped> {     \
   public:                                                                                \
    using mr_tile<T, Items, mr_logical_warp<Threads>, Which == striped>::mr_tile;         \
    MR_INLINE name() = default;                                                           \
  };
MR_TILE_CLASS(WarpLoad, WarpLoadAlgorithm, WARP_LOAD_DIRECT, WARP_LOAD_STRIPED)
MR_TILE_CLASS(WarpStore, WarpStoreAlgorithm, WARP_STORE_DIRECT, WARP_STORE_STRIPED)
#undef MR_TILE_CLASS

// The same for a thread of a given number.

template <class T, int Items, class Iterator>
MR_INLINE void LoadDirectBlocked(int thread, Iterator from, T (&items)[Items], int valid = mr_all_items) {
  mr_load_items(from, items, thread * Items, 1, valid);
}
template <class T, class Default, int Items, class Iterator>
MR_INLINE void LoadDirectBlocked(int thread, Iterator from, T (&items)[Items], int valid, Default otherwise) {
  for (T& item : items) item = otherwise;
  LoadDirectBlocked(thread, from, items, valid);
}
template <class T, int Items>
MR_INLINE void LoadDirectBlockedVectorized(int thread, const T* from, T (&items)[Items]) {
  LoadDirectBlocked(thread, from, items);
}
template <int Threads, class T, int Items, class Iterator>
MR_INLINE void LoadDirectStriped(int thread, Iterator from, T (&items)[Items], int valid = mr_all_items) {
  mr_load_items(from, items, thread, Threads, valid);
}
template <int Threads, class T, class Default, int Items, class Iterator>
MR_INLINE void LoadDirectStriped(int thread, Iterator from, T (&items)[Items], int valid, Default otherwise) {
  for (T& item : items) item = otherwise;
  LoadDirectStriped<Threads>(thread, from, items, valid);
}
template <class T, int Items, class Iterator>
MR_INLINE void LoadDirectWarpStriped(int thread, Iterator from, T (&items)[Items], int valid = mr_all_items) {
  mr_load_items(from, items, thread / 32 * 32 * Items + thread % 32, 32, valid);
}
template <class T, int Items, class Iterator>
MR_INLINE void StoreDirectBlocked(int thread, Iterator to, T (&items)[Items], int valid = mr_all_items) {
  mr_store_items(to, items, thread * Items, 1, valid);
}
template <class T, int Items>
MR_INLINE void StoreDirectBlockedVectorized(int thread, T* to, T (&items)[Items]) {
  StoreDirectBlocked(thread, to, items);
}
template <int Threads, class T, int Items, class Iterator>
MR_INLINE void StoreDirectStriped(int thread, Iterator to, T (&items)[Items], int valid = mr_all_items) {
  mr_store_items(to, items, thread, Threads, valid);
}
template <class T, int Items, class Iterator>
MR_INLINE void StoreDirectWarpStriped(int thread, Iterator to, T (&items)[Items], int valid = mr_all_items) {
  mr_store_items(to, items, thread / 32 * 32 * Items + thread % 32, 32, valid);
}

}  // namespace cub
