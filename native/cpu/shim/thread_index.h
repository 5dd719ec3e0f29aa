// threadIdx, blockIdx, blockDim, gridDim.
//
// The builder adds parameters of these names in front of a kernel's own, so they are registers and the thread loop
// vectorises. Device functions, and kernels that the builder leaves unchanged, use thread-local variables of the same
// names, which the loop updates; g++ removes the stores if no code reads them. Thread-local variables alone would also
// be correct, but a loop that does not vectorise then looks up their address in every thread (40 ms instead of 12 for a
// bounds-checked saxpy over 16M); parameters for device functions would require rewriting every call.
//
// Their members are unsigned in CUDA, so `int i = blockIdx.x * blockDim.x + threadIdx.x` might wrap, which stops g++
// from vectorising (12 ms instead of 4.4 for saxpy over 16M). So a proxy computes in int where CUDA's limits exclude
// overflow, and converts to unsigned everywhere else. Source that depends on the type itself is compiled with plain
// indices (MR_PLAIN_INDICES).
#pragma once

#include "vectors.h"

template <class T>
inline constexpr bool mr_is_number = mr_is_integral<T> || mr_is_same<T, float> || mr_is_same<T, double>;
template <class T>
using mr_if_number = mr_enable_if_t<mr_is_number<T>, T>;
template <class T>
using mr_if_other_number = mr_enable_if_t<mr_is_number<T> && !mr_is_same<T, unsigned>, T>;

/// The type of index * anything, such as `blockIdx.x * WIDTH`. It wraps like unsigned.
struct mr_product {
  unsigned value;
  MR_INLINE explicit constexpr mr_product(unsigned from) : value(from) {}
  /// Like the constructor of mr_index.
  template <class T, class = mr_if_other_number<T>>
  MR_INLINE constexpr mr_product(T from) : value(static_cast<unsigned>(from)) {}
  MR_INLINE operator unsigned() const { return value; }
};

struct mr_index {
  int value = 0;

  mr_index() = default;
  MR_INLINE explicit constexpr mr_index(int from) : value(from) {}
  MR_INLINE operator unsigned() const { return static_cast<unsigned>(value); }

  /// In `c ? threadIdx.x : -1` both conversions would be possible, which is an error. The builder then compiles with
  /// plain indices, since the result is unsigned in CUDA.
  template <class T, class = mr_if_other_number<T>>
  MR_INLINE constexpr mr_index(T from) : value(static_cast<int>(from)) {}

  // For variables declared as `auto i = threadIdx.x`, which have this type.
  MR_INLINE mr_index& operator=(unsigned from) { return value = static_cast<int>(from), *this; }
  MR_INLINE mr_index& operator+=(mr_index by) { return value += by.value, *this; }
#define MR_COMPOUND(op)                                                       \
  template <class T, class = mr_if_number<T>>                                 \
  MR_INLINE mr_index& operator op##=(T by) {                                  \
    return *this = static_cast<unsigned>(static_cast<unsigned>(*this) op by); \
  }
  MR_COMPOUND(+)
  MR_COMPOUND(-)
  MR_COMPOUND(*)
  MR_COMPOUND(/)
  MR_COMPOUND(%)
  MR_COMPOUND(<<)
  MR_COMPOUND(>>)
  MR_COMPOUND(&)
  MR_COMPOUND(|)
  MR_COMPOUND(^)
#undef MR_COMPOUND
  MR_INLINE mr_index& operator++() {
    return ++value, *this;
  }
  MR_INLINE mr_index& operator--() {
    return --value, *this;
  }
  MR_INLINE mr_index operator++(int) {
    return mr_index(value++);
  }
  MR_INLINE mr_index operator--(int) {
    return mr_index(value--);
  }
};

template <>
inline constexpr bool mr_is_integral<mr_index> = true;

// Positions in a grid: below 2^31 on every axis, which the launch checks. Templates, so that arguments are not
// converted.
template <class T, class U>
using mr_if_indices = mr_enable_if_t<mr_is_same<T, mr_index> && mr_is_same<U, mr_index>, T>;
template <class T, class U>
using mr_if_product = mr_enable_if_t<mr_is_same<T, mr_product> && mr_is_same<U, mr_index>, U>;
template <class T, class U>
MR_INLINE mr_if_indices<T, U> operator+(T a, U b) {
  return mr_index(a.value + b.value);
}
template <class T, class U>
MR_INLINE mr_if_indices<T, U> operator*(T a, U b) {
  return mr_index(a.value * b.value);
}
template <class T, class U>
MR_INLINE mr_if_product<T, U> operator+(T a, U b) {
  return mr_index(static_cast<int>(a.value) + b.value);
}
template <class T, class U>
MR_INLINE mr_if_product<U, T> operator+(T a, U b) {
  return b + a;
}

// Exactly int (or unsigned): an argument of a wider type must select the built-in operator.
template <class T>
using mr_if_int = mr_enable_if_t<mr_is_same<T, int>, T>;
template <class T, class = mr_if_int<T>>
MR_INLINE mr_index operator+(mr_index a, T b) {
  return mr_index(a.value + b);
}
template <class T, class = mr_if_int<T>>
MR_INLINE mr_index operator+(T a, mr_index b) {
  return b + a;
}

// An index times a literal may be a hash, which must wrap.
template <class T>
using mr_if_32_bit = mr_enable_if_t<mr_is_same<T, int> || mr_is_same<T, unsigned>, T>;
template <class T, class = mr_if_32_bit<T>>
MR_INLINE mr_product operator*(mr_index a, T b) {
  return mr_product(static_cast<unsigned>(a.value) * static_cast<unsigned>(b));
}
template <class T, class = mr_if_32_bit<T>>
MR_INLINE mr_product operator*(T a, mr_index b) {
  return b * a;
}

// index < int with the result of an unsigned comparison, but by signed comparisons, at which g++ can split a loop over
// threads (`if (threadIdx.x < stride) part[threadIdx.x] += part[threadIdx.x + stride]`: 2 ms instead of 65).
MR_INLINE bool mr_is_less(int a, int b) {
  return b < 0 ? a >= 0 || a < b : a >= 0 && a < b;
}
template <class T, class = mr_if_int<T>>
MR_INLINE bool operator<(mr_index a, T b) {
  return mr_is_less(a.value, b);
}
template <class T, class = mr_if_int<T>>
MR_INLINE bool operator>=(mr_index a, T b) {
  return !mr_is_less(a.value, b);
}
template <class T, class = mr_if_int<T>>
MR_INLINE bool operator>(T a, mr_index b) {
  return mr_is_less(b.value, a);
}
template <class T, class = mr_if_int<T>>
MR_INLINE bool operator<=(T a, mr_index b) {
  return !mr_is_less(b.value, a);
}

/// A subscript below 2^31 (src/cuda-cpp/lower/index-expressions.ts) as an int, which shows that elements are
/// adjacent.
template <class T>
MR_INLINE T mr_subscript(T at) {
  return at;
}
MR_INLINE int mr_subscript(mr_index at) {
  return at.value;
}

/// With plain indices, source has exactly CUDA's types, but g++ vectorises fewer loops.
#if defined(MR_PLAIN_INDICES)
using mr_member = unsigned;
#else
using mr_member = mr_index;
#endif

struct mr_index3 {
  mr_member x, y, z;
  MR_INLINE operator uint3() const { return {x, y, z}; }
  MR_INLINE operator dim3() const { return {x, y, z}; }
};

MR_OF_THREAD mr_index3 threadIdx, blockIdx, blockDim, gridDim;
static constexpr int warpSize = 32;

/// The launch's dynamic shared memory, for `extern __shared__` arrays.
MR_OF_THREAD char* mr_dynamic_shared;
MR_OF_THREAD unsigned mr_dynamic_shared_bytes;

/// An `extern __shared__ T name[]` at namespace scope: its address is known only while a block runs.
template <class T>
struct mr_dynamic_array {
  MR_INLINE operator T*() const { return reinterpret_cast<T*>(mr_dynamic_shared); }
  /// Casts of an array, `(short*)name` and `(size_t)name`.
  template <class U>
  MR_INLINE explicit operator U() const {
    return (U)mr_dynamic_shared;
  }
};
