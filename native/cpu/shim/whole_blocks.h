// Kernels that the builder cut at their barriers (src/toolchain/cuda-to-cpu/loop-fission.ts): called once for each
// block, with the loops over its threads inside.
#pragma once

#include "launch.h"

/// What such a kernel returns, which tells it from others. Its first parameters are the indices that a block shares.
struct mr_whole_block {};

template <auto Kernel, class... Args>
static MR_INLINE void mr_run_whole_blocks(const MrCpuLaunch* launch, unsigned long long first, unsigned long long end,
                                          Args... args) {
  const unsigned* size = launch->block;
  const mr_index3 block_dim{mr_index(static_cast<int>(size[0])), mr_index(static_cast<int>(size[1])),
                            mr_index(static_cast<int>(size[2]))};
  const int columns = static_cast<int>(launch->grid[0]);
  const int rows = static_cast<int>(launch->grid[1]);
  const mr_index3 grid_dim{mr_index(columns), mr_index(rows), mr_index(static_cast<int>(launch->grid[2]))};
  mr_launch_of_block = launch;
  mr_dynamic_shared = launch->dynamic_shared;
  blockDim = block_dim;
  gridDim = grid_dim;
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch); ++block) {
    const mr_index3 block_index{mr_index(static_cast<int>(block % columns)),
                                mr_index(static_cast<int>(block / columns % rows)),
                                mr_index(static_cast<int>(block / columns / rows))};
    blockIdx = block_index;
    launch->block_now = block;
    Kernel(block_index, block_dim, grid_dim, args...);
  }
}

template <class... Params>
struct mr_signature<mr_whole_block(mr_index3, mr_index3, mr_index3, Params...)> : mr_signature<void(Params...)> {
  template <auto Kernel, unsigned... Number>
  static MR_INLINE void run(const MrCpuLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_whole_blocks<Kernel, Params...>(launch, first, end, mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrCpuLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};

/// A value of each thread of a block, where it outlives the part between two barriers in which it is declared. Kernels
/// with larger ones do not compile so, and the builder makes coroutines of their threads.
template <class T, bool IsTrivial = __has_trivial_constructor(T)>
struct mr_of_threads {
  static_assert(sizeof(T) <= 1024, "What threads keep between barriers has at most 1024 bytes.");
  static_assert(__has_trivial_destructor(T), "What threads keep between barriers has no end of its own.");
  alignas(64) T of[1024];
};
/// Of objects, which begin where the text has them and not before.
template <class T>
struct mr_of_threads<T, false> {
  static_assert(sizeof(T) <= 1024, "What threads keep between barriers has at most 1024 bytes.");
  static_assert(__has_trivial_destructor(T), "What threads keep between barriers has no end of its own.");
  union {
    char nothing;
    alignas(64) T of[1024];
  };
  constexpr mr_of_threads() : nothing() {}
};

/// Where an object begins that was given room.
struct mr_at {
  void* to;
};
MR_INLINE void* operator new(size_t, mr_at place) noexcept {
  return place.to;
}

/// An object with its value, made by the constructor that `T name = value;` would take.
template <class T>
struct mr_begun {
  T value;
};

/// Where such a value is declared without one: an object begins anew each time, and of numbers nothing is known.
template <class T>
MR_INLINE void mr_begin(T& value) {
  if constexpr (!__has_trivial_constructor(T)) ::new (mr_at{__builtin_addressof(value)}) T;
}
template <class T, size_t Count>
MR_INLINE void mr_begin(T (&values)[Count]) {
  for (T& value : values) mr_begin(value);
}

/// The same address, of which the compiler knows nothing any more: it keeps it in a register, where it would ask for
/// that of a thread-local variable again and again, or address the stack, where counting in an array is slower by half.
template <class T>
MR_INLINE T* mr_kept(T* address) {
  asm("" : "+r"(address));
  return address;
}

/// What CUDA has as the limit of a block's arrays of shared memory. They are on the stack: nothing else points to them.
static constexpr size_t mr_most_shared_bytes = 48 << 10;
