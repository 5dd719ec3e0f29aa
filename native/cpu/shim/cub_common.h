// What CUB's collective functions share: the threads that take part, their temporary memory, and how they wait.
//
// All threads of a block run on one thread of the pool. Each stores its values in the temporary memory and waits. The
// thread that continues first computes the results of all threads; each thread then loads its own result. So a call
// waits only once, and a second call with the same memory finds no values of the first one.
#pragma once

#include "waiting.h"

/// The thread's rank in its block, x fastest.
MR_INLINE int mr_rank_in_block() {
  return static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
}

/// All threads of a block.
template <int Threads>
struct mr_whole_block {
  static constexpr int count = Threads;
  static MR_INLINE int rank() { return mr_rank_in_block(); }
  template <class Finish>
  static MR_INLINE auto then(Finish finish) {
    __syncthreads();
    return finish();
  }
};
/// The logical warp of a thread: `Threads` neighbouring lanes. A size that is no power of two has one a warp.
template <int Threads>
struct mr_logical_warp {
  static_assert(Threads >= 1 && Threads <= 32, "A logical warp has at most 32 threads.");
  static constexpr int count = Threads;
  static constexpr bool is_tiled = (Threads & (Threads - 1)) == 0;
  static MR_INLINE int lane() { return mr_rank_in_block() % 32; }
  static MR_INLINE int rank() { return is_tiled ? lane() % Threads : lane(); }
  static MR_INLINE unsigned mask() {
    const unsigned lanes = Threads == 32 ? mr_all_lanes : (1u << Threads % 32) - 1u;
    return is_tiled ? lanes << (lane() - rank()) : lanes;
  }
  template <class Finish>
  static MR_INLINE auto then(Finish finish) {
    __syncwarp(mask());
    return finish();
  }
};

/// Memory for values of any type, without constructors: it lies in shared memory, and in unions.
template <class T, int Count>
struct mr_slots {
  alignas(T) unsigned char bytes[sizeof(T) * static_cast<size_t>(Count)];
  MR_INLINE T& operator[](int at) { return reinterpret_cast<T*>(bytes)[at]; }
};

/// The base of a collective class: its `TempStorage`, given or one of its own for each block.
template <class Storage>
class mr_collective {
 public:
  using TempStorage = Storage;

  // The first thread of a call uses the other threads' part without a barrier, which is no race of the kernel.
  MR_INLINE mr_collective() : storage(own()) { mr_race_pass(storage, sizeof(Storage)); }
  MR_INLINE explicit mr_collective(Storage& given) : storage(&given) { mr_race_pass(storage, sizeof(Storage)); }

 protected:
  Storage* storage;

 private:
  static Storage* own() {
    static thread_local Storage of_block;
    return &of_block;
  }
};

namespace cub {

struct NullType {};

template <class Key, class Value>
struct KeyValuePair {
  using Key_ = Key;
  Key key;
  Value value;
  MR_INLINE bool operator==(const KeyValuePair& other) const { return key == other.key && value == other.value; }
  MR_INLINE bool operator!=(const KeyValuePair& other) const { return !(*this == other); }
};

#define MR_CUB_OPERATOR(name, expression)       \
  struct name {                                 \
    template <class T, class U>                 \
    MR_INLINE auto operator()(T a, U b) const { \
      return expression;                        \
    }                                           \
  };
MR_CUB_OPERATOR(Sum, a + b)
MR_CUB_OPERATOR(Difference, a - b)
MR_CUB_OPERATOR(Division, a / b)
MR_CUB_OPERATOR(Max, a < b ? b : a)
MR_CUB_OPERATOR(Min, b < a ? b : a)
MR_CUB_OPERATOR(Equality, a == b)
MR_CUB_OPERATOR(Inequality, a != b)
#undef MR_CUB_OPERATOR

/// Of pairs with an index: the extreme value with the smallest index.
struct ArgMax {
  template <class Pair>
  MR_INLINE Pair operator()(const Pair& a, const Pair& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class Pair>
  MR_INLINE Pair operator()(const Pair& a, const Pair& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
template <class T>
struct CastOp {
  template <class U>
  MR_INLINE T operator()(U value) const {
    return static_cast<T>(value);
  }
};

MR_INLINE unsigned LaneId() {
  return static_cast<unsigned>(mr_rank_in_block() % 32);
}
MR_INLINE unsigned WarpId() {
  return static_cast<unsigned>(mr_rank_in_block() / 32);
}
MR_INLINE int RowMajorTid(int, int, int) {
  return mr_rank_in_block();
}

}  // namespace cub
