// Kernels after loop fission (src/cuda-cpp/lower/loop-fission.ts): called once per block, with the loops over
// its threads inside.
#pragma once

#include "kernel_exports.h"

/// The return type that marks such a kernel. Its first parameters are the indices that a block shares.
struct mr_whole_block {};

template <auto Kernel, class... Args>
static MR_INLINE void mr_run_whole_blocks(const MrLaunch* launch, unsigned long long first, unsigned long long end,
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
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_whole_blocks<Kernel, Params...>(launch, first, end, mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};

/// Arrays of which each element is aligned for vector types, although their size is no multiple of 16 bytes.
template <class T>
struct mr_padded {
  static constexpr size_t stride = (sizeof(T) + 15) / 16 * 16;
  alignas(64) char bytes[1024 * stride];
  MR_INLINE T& operator[](int thread) { return *reinterpret_cast<T*>(bytes + thread * stride); }
};
template <class T>
constexpr bool mr_is_uneven = false;
template <class T, size_t Size>
constexpr bool mr_is_uneven<T[Size]> = sizeof(T[Size]) > 16 && sizeof(T[Size]) % 16 != 0;
template <class T, bool IsUneven = mr_is_uneven<T>>
struct mr_rows {
  using type = T[1024];
};
template <class T>
struct mr_rows<T, true> {
  using type = mr_padded<T>;
};

/// A per-thread value that outlives the part between two barriers that declares it. Larger values do not compile, and
/// the builder then gives each thread a stack.
template <class T, bool IsTrivial = __has_trivial_constructor(T)>
struct mr_of_threads {
  static_assert(sizeof(T) <= 1024, "A variable that lives across a barrier has at most 1024 bytes.");
  static_assert(__has_trivial_destructor(T), "A variable that lives across a barrier must have a trivial destructor.");
  alignas(64) typename mr_rows<T>::type of;
};
/// For class types, whose objects are constructed at their declaration.
template <class T>
struct mr_of_threads<T, false> {
  static_assert(sizeof(T) <= 1024, "A variable that lives across a barrier has at most 1024 bytes.");
  static_assert(__has_trivial_destructor(T), "A variable that lives across a barrier must have a trivial destructor.");
  union {
    char nothing;
    alignas(64) T of[1024];
  };
  constexpr mr_of_threads() : nothing() {}
};

/// Placement new tag: constructs an object in its array element.
struct mr_at {
  void* to;
};
MR_INLINE void* operator new(size_t, mr_at place) noexcept {
  return place.to;
}

/// An object with its value, constructed as by `T name = value;`.
template <class T>
struct mr_begun {
  T value;
};

/// For a declaration without a value: constructs an object anew, and makes a number's value unspecified.
template <class T>
MR_INLINE void mr_begin(T& value) {
  if constexpr (!__has_trivial_constructor(T)) ::new (mr_at{__builtin_addressof(value)}) T;
}
template <class T, size_t Count>
MR_INLINE void mr_begin(T (&values)[Count]) {
  for (T& value : values) mr_begin(value);
}

/// The same address, hidden from the compiler, which then keeps it in a register. Otherwise it would look up a
/// thread-local variable repeatedly, or address the stack, which makes counting in an array half as fast.
template <class T>
MR_INLINE T* mr_kept(T* address) {
  asm("" : "+r"(address));
  return address;
}

/// The same address, which the compiler takes for memory that nothing else points to: it then keeps elements in
/// registers, as those of an array on the stack.
static __attribute__((noinline, malloc)) void* mr_alone(void* address) {
  asm("" : "+r"(address));
  return address;
}
template <class T>
MR_INLINE T& mr_own(T& variable) {
  return *static_cast<T*>(__builtin_assume_aligned(mr_alone(__builtin_addressof(variable)), 64));
}

/// CUDA's limit for a block's static shared arrays.
static constexpr size_t mr_most_shared_bytes = 48 << 10;
