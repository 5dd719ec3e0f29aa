// Shifts by an amount that may reach the width of the value. A GPU then gives 0, or the sign for `>>` of a negative
// number; C++ leaves the result undefined, and the processor takes the amount modulo the width. The builder adds the
// call of mr_shift (src/cuda-cpp/lower/shift-amounts.ts): `x << n` becomes `x << ::mr_shift(n)`.
#pragma once

#include "thread_index.h"

/// The right operand of a shift, of type T after promotion. A GPU reads 32 bits of it, without a sign.
template <class T>
struct mr_amount {
  T value;
  /// For operators of the compiler, whose left operands are not integers as such (enumerations).
  MR_INLINE constexpr operator T() const { return value; }
  MR_INLINE constexpr unsigned bits() const { return static_cast<unsigned>(value); }
};

template <class T>
inline constexpr bool mr_has_shifts = mr_is_integral<T> || mr_is_same<T, mr_product>;
/// The type of a shifted T.
template <class T>
using mr_shifted_t = mr_enable_if_t<mr_has_shifts<T>, decltype(T(0) << 0)>;

template <class T>
MR_INLINE constexpr mr_amount<mr_shifted_t<T>> mr_shift(T amount) {
  return {static_cast<mr_shifted_t<T>>(amount)};
}
/// Other types, such as enumerations, have operators that this header does not replace.
template <class T>
MR_INLINE constexpr mr_enable_if_t<!mr_has_shifts<T>, const T&> mr_shift(const T& amount) {
  return amount;
}

template <class T, class A>
MR_INLINE constexpr mr_shifted_t<T> operator<<(T value, mr_amount<A> amount) {
  using R = mr_shifted_t<T>;
  const unsigned width = 8 * sizeof(R);
  // In 32 bits where that suffices, or a loop over threads needs twice the registers. With a mask, since g++ vectorises
  // few conditions here.
  if constexpr (sizeof(R) == 4) {
    return static_cast<R>(static_cast<unsigned>(value) << (amount.bits() & 31) & -unsigned(amount.bits() < width));
  } else {
    return static_cast<R>(static_cast<unsigned long long>(value) << (amount.bits() & 63) &
                          -static_cast<unsigned long long>(amount.bits() < width));
  }
}
template <class T, class A>
MR_INLINE constexpr mr_shifted_t<T> operator>>(T value, mr_amount<A> amount) {
  using R = mr_shifted_t<T>;
  const unsigned last = 8 * sizeof(R) - 1;
  const R shifted = static_cast<R>(static_cast<R>(value) >> (amount.bits() < last ? amount.bits() : last));
  // Only the sign is left of a negative number, and of others the highest bit.
  return R(-1) < R() ? shifted : static_cast<R>(shifted & -R(amount.bits() <= last));
}

template <class T, class A, class = mr_shifted_t<T>>
MR_INLINE constexpr T& operator<<=(T& value, mr_amount<A> amount) {
  return value = static_cast<T>(value << amount);
}
template <class T, class A, class = mr_shifted_t<T>>
MR_INLINE constexpr T& operator>>=(T& value, mr_amount<A> amount) {
  return value = static_cast<T>(value >> amount);
}
