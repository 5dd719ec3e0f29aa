// Conversions of floats to integers that saturate, as a GPU's do; C++ leaves them undefined out of range. A GPU gives 0
// for NaN if both types have 32 bits, else the bits of the lowest signed number (seen on an H100). The builder writes
// `::mr_cast<int>(x)` for `(int)x` (src/cuda-cpp/lower/saturating-casts.ts), and
// `::mr_number_of(x)` where a float becomes an integer without a cast. Without branches, so that loops vectorise.
#pragma once

#include "types.h"

template <class T>
inline constexpr bool mr_is_float = mr_is_same<T, float> || mr_is_same<T, double>;
template <class T>
inline constexpr bool mr_is_whole = mr_is_integral<T> && !mr_is_same<T, bool>;

/// nvcc converts to 32 bits of the same sign first and keeps the low bits for narrower types.
template <class To, class From>
MR_INLINE constexpr To mr_held(From x) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  if constexpr (sizeof(To) < 4) {
    if constexpr (is_signed) return static_cast<To>(mr_held<int>(x));
    return static_cast<To>(mr_held<unsigned>(x));
  } else {
    constexpr int bits = sizeof(To) * 8 - (is_signed ? 1 : 0);
    constexpr From limit = static_cast<From>(1ull << (bits - 1)) * 2;
    constexpr To highest = static_cast<To>(~0ull >> (64 - bits));
    constexpr bool is_wide = sizeof(From) == 8 || sizeof(To) == 8;
    constexpr To of_nan = is_wide ? static_cast<To>(1ull << (sizeof(To) * 8 - 1)) : To(0);
    if constexpr (is_signed) {
      // What the processor gives below the lowest number is the lowest number.
      const To whole = x >= limit ? highest : static_cast<To>(x);
      return x == x ? whole : of_nan;
    } else {
      const From positive = x > From(0) ? x : From(0);
      const To whole = positive < limit ? static_cast<To>(positive) : highest;
      return x == x ? whole : of_nan;
    }
  }
}

/// A cast in C's notation.
template <class To, class From>
MR_INLINE constexpr mr_enable_if_t<mr_is_float<From> || mr_is_integral<From>, To> mr_cast(From x) {
  if constexpr (mr_is_float<From> && mr_is_whole<To>)
    return mr_held<To>(x);
  else
    return (To)x;
}
template <class T>
inline constexpr bool mr_is_arithmetic_of = mr_is_float<T> || mr_is_integral<T>;
template <class T>
inline constexpr bool mr_is_arithmetic_of<T&> = mr_is_arithmetic_of<T>;
template <class T>
inline constexpr bool mr_is_arithmetic_of<const T> = mr_is_arithmetic_of<T>;
template <class T>
inline constexpr bool mr_is_arithmetic_of<volatile T> = mr_is_arithmetic_of<T>;
template <class T>
inline constexpr bool mr_is_arithmetic_of<const volatile T> = mr_is_arithmetic_of<T>;
/// Of other types, which may be references to objects that cannot be copied.
template <class To, class From>
MR_INLINE constexpr mr_enable_if_t<!mr_is_arithmetic_of<From>, To> mr_cast(From&& x) {
  return (To) static_cast<From&&>(x);
}

/// A float that is about to be converted. An integer takes it saturated; others take it as a float.
template <class From>
struct mr_number {
  From value;
  MR_INLINE constexpr operator From() const { return value; }
  template <class To, class = mr_enable_if_t<mr_is_whole<To>, To>>
  MR_INLINE constexpr operator To() const {
    return mr_held<To>(value);
  }
};
/// In a template, the type may be another one.
template <class T>
MR_INLINE constexpr mr_enable_if_t<!mr_is_float<T>, T> mr_number_of(T x) {
  return x;
}
template <class T>
MR_INLINE constexpr mr_enable_if_t<mr_is_float<T>, mr_number<T>> mr_number_of(T x) {
  return {x};
}

#define MR_UPDATE(op)                                                       \
  template <class T, class From, class = mr_enable_if_t<mr_is_whole<T>, T>> \
  MR_INLINE constexpr T& operator op##=(T& of, mr_number<From> by) {        \
    return of = mr_cast<T>(of op by.value);                                 \
  }
MR_UPDATE(+)
MR_UPDATE(-)
MR_UPDATE(*)
MR_UPDATE(/)
#undef MR_UPDATE
