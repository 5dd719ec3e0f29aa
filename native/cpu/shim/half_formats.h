// The two 16-bit floating-point formats, as bits: IEEE half, and bfloat16, the upper half of a float. Results are those
// of a GPU, bit for bit: each is rounded once, subnormal numbers are kept, and a result that is NaN is 0x7fff.
//
// Sources may define macros before they include a CUDA header, so names here are long or begin with mr_.
#pragma once

#include "rounding.h"

enum class mr_toward { nearest, zero, down, up };

static constexpr unsigned short mr_half_nan = 0x7fff;

/// Rounds a number to a format with `fraction` stored bits: in integers, so that it depends on no instruction.
template <int fraction, int bias, mr_toward direction = mr_toward::nearest>
MR_INLINE unsigned short mr_narrowed(double value) {
  constexpr unsigned infinity = (2u * bias + 1) << fraction;
  const unsigned long long bits = __builtin_bit_cast(unsigned long long, value);
  const unsigned sign = static_cast<unsigned>(bits >> 48) & 0x8000u;
  const unsigned long long size = bits & 0x7fffffffffffffffull;
  if (size >= 0x7ff0000000000000ull) return size == 0x7ff0000000000000ull ? sign | infinity : mr_half_nan;
  const int power = static_cast<int>(size >> 52) - 1023;
  constexpr bool is_away = direction == mr_toward::up || direction == mr_toward::down;
  const bool is_upward = is_away && (sign != 0) == (direction == mr_toward::down);
  if (power > bias) return sign | (is_upward || direction == mr_toward::nearest ? infinity : infinity - 1);
  // A subnormal double is far below every bit that is kept, so its power does not matter.
  const unsigned long long digits = (size & 0xfffffffffffffull) | (power > -1023 ? 1ull << 52 : 0);
  const bool is_normal = power >= 1 - bias;
  const int wanted = 52 - fraction + (is_normal ? 0 : 1 - bias - power);
  const int shift = wanted < 63 ? wanted : 63;
  const unsigned long long kept = digits >> shift, rest = digits & ((1ull << shift) - 1), middle = 1ull << (shift - 1);
  const bool is_above =
      direction == mr_toward::nearest ? rest > middle || (rest == middle && (kept & 1)) : is_upward && rest != 0;
  // A carry out of the fraction increments the exponent, which may give infinity.
  const unsigned before = is_normal ? static_cast<unsigned>(power + bias - 1) << fraction : 0;
  return static_cast<unsigned short>(sign | (before + static_cast<unsigned>(kept) + is_above));
}

/// To nearest. As on a GPU, a double that is NaN keeps its sign and its upper bits, unlike a float.
template <int fraction, int bias>
MR_INLINE unsigned short mr_narrowed_double(double value) {
  const unsigned long long bits = __builtin_bit_cast(unsigned long long, value);
  constexpr unsigned quiet_nan = ((2u * bias + 1) << fraction) | (1u << (fraction - 1));
  if (value != value) {
    const unsigned kept = static_cast<unsigned>(bits >> (52 - fraction)) & ((1u << fraction) - 1);
    return static_cast<unsigned short>((static_cast<unsigned>(bits >> 48) & 0x8000u) | quiet_nan | kept);
  }
  return mr_narrowed<fraction, bias>(value);
}

/// An integer as a double that rounds to any of these formats as the integer does: bits that the double cannot hold are
/// replaced by one bit that tells whether any of them is set.
MR_INLINE double mr_sticky(unsigned long long value) {
  return value >> 53 == 0 ? static_cast<double>(value)
                          : static_cast<double>(value >> 11 | ((value & 0x7ffu) != 0)) * 2048.0;
}
MR_INLINE double mr_sticky(long long value) {
  return value < 0 ? -mr_sticky(0ull - static_cast<unsigned long long>(value))
                   : mr_sticky(static_cast<unsigned long long>(value));
}

/// product + addend with its last bit set if the sum is inexact ("rounded to odd"), so that rounding it again to a
/// format with at least two bits less gives what rounding the exact sum gives.
template <class mr_Float, class mr_Bits>
MR_INLINE mr_Float mr_sum_to_odd(mr_Float product, mr_Float addend) {
  const mr_Float sum = mr_rounded(product + addend);
  const mr_Float error = mr_sum_error<mr_Float>(product, addend, sum);
  const mr_Bits bits = __builtin_bit_cast(mr_Bits, sum);
  // The error of a sum that is infinite or NaN does not matter: the sum has no last bit.
  if (!(error != 0) || sum - sum != 0 || (bits & 1)) return sum;
  return __builtin_bit_cast(mr_Float, (error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/// IEEE half: 10 stored bits, exponents from -14 to 15.
struct mr_half_format {
  static constexpr unsigned short one = 0x3c00, infinity = 0x7c00;

  template <mr_toward direction>
  static MR_INLINE unsigned short narrowed(double value) {
    return mr_narrowed<10, 15, direction>(value);
  }
  static MR_INLINE unsigned short of_double(double value) { return mr_narrowed_double<10, 15>(value); }

  // Without the processor's instructions for half (F16C): g++ 12 neither vectorises them nor compares their results as
  // floats. These vectorise. Every alternative is computed, so that the choice needs no branch.
  static MR_INLINE unsigned short nearest(float value) {
    const unsigned bits = __builtin_bit_cast(unsigned, value), size = bits & 0x7fffffffu;
    // 112 is the difference of the biases. Adds just under half of the last kept bit, and one more if that bit is odd.
    const unsigned normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    // The sum with 0.5 has the halves' last bit, 2^-24, as its own last bit, so this addition rounds.
    const float sum = __builtin_bit_cast(float, size) + 0.5f;
    const unsigned subnormal = __builtin_bit_cast(unsigned, sum) - (126u << 23);
    const unsigned finite = size < (113u << 23) ? subnormal : normal;
    // From 65520 on, the nearest half is infinity.
    const unsigned rounded = size >= 0x477ff000u ? infinity : finite;
    return static_cast<unsigned short>(size > 0x7f800000u ? mr_half_nan : rounded | (bits >> 16 & 0x8000u));
  }
  static MR_INLINE float widened(unsigned short bits) {
    const unsigned size = bits & 0x7fffu;
    // With a float's bias the exponent is 112 too low, also for subnormal halves, which are then subnormal floats.
    const float finite = __builtin_bit_cast(float, size << 13) * 0x1p112f;
    const unsigned other = size == infinity ? 0x7f800000u : 0x7fffffffu;
    const unsigned wide = size >= infinity ? other : __builtin_bit_cast(unsigned, finite);
    // NaN loses its sign.
    return __builtin_bit_cast(float, wide | (size > infinity ? 0u : (bits & 0x8000u) << 16));
  }

  // A float has 24 significant bits and a half 11. As 24 >= 2 * 11 + 2, rounding the exact result of one of these
  // operations to a float and then to a half gives the same as rounding it once (Figueroa, "When is double rounding
  // innocuous?"). A result below the normal halves is a sum or a product, which the float holds exactly, or a quotient,
  // which is no closer than 2^-22 of itself to the middle of two halves unless it is the middle.
  static MR_INLINE unsigned short sum(unsigned short x, unsigned short y) { return nearest(widened(x) + widened(y)); }
  static MR_INLINE unsigned short product(unsigned short x, unsigned short y) {
    return nearest(widened(x) * widened(y));
  }
  static MR_INLINE unsigned short quotient(unsigned short x, unsigned short y) {
    return nearest(widened(x) / widened(y));
  }
  /// x * y + z, rounded once: a float holds the product exactly, but not every sum.
  static MR_INLINE unsigned short fma(unsigned short x, unsigned short y, unsigned short z) {
    return nearest(mr_sum_to_odd<float, int>(widened(x) * widened(y), widened(z)));
  }
};

/// bfloat16: 7 stored bits, and the exponents of a float.
struct mr_bfloat16_format {
  static constexpr unsigned short one = 0x3f80, infinity = 0x7f80;

  template <mr_toward direction>
  static MR_INLINE unsigned short narrowed(double value) {
    return mr_narrowed<7, 127, direction>(value);
  }
  static MR_INLINE unsigned short of_double(double value) { return mr_narrowed_double<7, 127>(value); }
  static MR_INLINE unsigned short nearest(float value) {
    const unsigned bits = __builtin_bit_cast(unsigned, value);
    // Adds just under half of the last kept bit, and one more if that bit is odd.
    const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return value == value ? static_cast<unsigned short>(rounded) : mr_half_nan;
  }
  static MR_INLINE float widened(unsigned short bits) {
    return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
  }

  // As above: 24 >= 2 * 8 + 2. Sums are exact below the normal floats. Products and quotients are not, so they are
  // computed again as doubles: 53 bits round to a subnormal bfloat16 as the exact result does.
  static MR_INLINE unsigned short sum(unsigned short x, unsigned short y) { return nearest(widened(x) + widened(y)); }
  static MR_INLINE unsigned short product(unsigned short x, unsigned short y) {
    const float wide = widened(x) * widened(y);
    if (__builtin_fabsf(wide) >= 0x1p-126f) return nearest(wide);
    return narrowed<mr_toward::nearest>(static_cast<double>(widened(x)) * widened(y));
  }
  static MR_INLINE unsigned short quotient(unsigned short x, unsigned short y) {
    const float wide = widened(x) / widened(y);
    if (__builtin_fabsf(wide) >= 0x1p-126f) return nearest(wide);
    return narrowed<mr_toward::nearest>(static_cast<double>(widened(x)) / widened(y));
  }
  /// As above. The product may be below or above the floats, hence doubles.
  static MR_INLINE unsigned short fma(unsigned short x, unsigned short y, unsigned short z) {
    const double product = static_cast<double>(widened(x)) * widened(y);
    return narrowed<mr_toward::nearest>(mr_sum_to_odd<double, long long>(product, widened(z)));
  }
};

/// Clamped to [0, 1], for the _sat forms: NaN becomes 0, and no zero has a sign.
template <class mr_Format>
MR_INLINE unsigned short mr_half_saturated(unsigned short bits) {
  if (bits > mr_Format::infinity) return 0;
  return bits < mr_Format::one ? bits : mr_Format::one;
}

/// The larger or the smaller number. A number wins over NaN unless `keeps_nan`, and -0 is below 0.
template <class mr_Format, bool is_max, bool keeps_nan>
MR_INLINE unsigned short mr_half_extreme(unsigned short x, unsigned short y) {
  const float wide_x = mr_Format::widened(x), wide_y = mr_Format::widened(y);
  const bool is_nan_x = wide_x != wide_x, is_nan_y = wide_y != wide_y;
  if (keeps_nan ? is_nan_x || is_nan_y : is_nan_x && is_nan_y) return mr_half_nan;
  if (is_nan_x) return y;
  if (is_nan_y) return x;
  if (wide_x == wide_y) return is_max ? x & y : x | y;
  return (is_max ? wide_x > wide_y : wide_x < wide_y) ? x : y;
}
