// std::numeric_limits of <limits>, for kernel sources.
#pragma once

#include <float.h>

namespace std {

enum float_round_style {
  round_indeterminate = -1,
  round_toward_zero = 0,
  round_to_nearest = 1,
  round_toward_infinity = 2,
  round_toward_neg_infinity = 3
};
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent = 0, denorm_present = 1 };

/// What every type has, whatever its kind.
struct mr_no_limits {
  static constexpr bool is_specialized = false, is_signed = false, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false;
  static constexpr bool has_denorm_loss = false, is_iec559 = false, is_bounded = false, is_modulo = false;
  static constexpr bool traps = false, tinyness_before = false;
  static constexpr float_denorm_style has_denorm = denorm_absent;
  static constexpr float_round_style round_style = round_toward_zero;
  static constexpr int digits = 0, digits10 = 0, max_digits10 = 0, radix = 0;
  static constexpr int min_exponent = 0, min_exponent10 = 0, max_exponent = 0, max_exponent10 = 0;
};

template <class T, bool IsInteger>
struct mr_limits : mr_no_limits {
  MR_BOTH static constexpr T min() noexcept { return T(); }
  MR_BOTH static constexpr T max() noexcept { return T(); }
  MR_BOTH static constexpr T lowest() noexcept { return T(); }
};

template <class T>
struct mr_limits<T, true> : mr_no_limits {
  static constexpr bool is_specialized = true, is_signed = mr_is_negative<T>, is_integer = true, is_exact = true;
  static constexpr bool is_bounded = true, is_modulo = !is_signed;
  static constexpr int digits = is_same_v<T, bool> ? 1 : static_cast<int>(sizeof(T)) * 8 - (is_signed ? 1 : 0);
  static constexpr int digits10 = digits * 643 / 2136, radix = 2;
  /// Half of the highest value, shifted, so that no step overflows.
  MR_BOTH static constexpr T max() noexcept {
    return is_same_v<T, bool> ? T(1) : static_cast<T>(((static_cast<T>(T(1) << (digits - 1)) - T(1)) << 1) + 1);
  }
  MR_BOTH static constexpr T min() noexcept { return is_signed ? static_cast<T>(-max() - 1) : T(0); }
  MR_BOTH static constexpr T lowest() noexcept { return min(); }
  MR_BOTH static constexpr T epsilon() noexcept { return T(0); }
  MR_BOTH static constexpr T round_error() noexcept { return T(0); }
  MR_BOTH static constexpr T infinity() noexcept { return T(0); }
  MR_BOTH static constexpr T quiet_NaN() noexcept { return T(0); }
  MR_BOTH static constexpr T signaling_NaN() noexcept { return T(0); }
  MR_BOTH static constexpr T denorm_min() noexcept { return T(0); }
};

struct mr_floating : mr_no_limits {
  static constexpr bool is_specialized = true, is_signed = true, is_bounded = true, is_iec559 = true;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int radix = 2;
};

/// `bits` is the integer of the same size, followed by the bits of infinity and of the two kinds of NaN.
#define MR_STD_FLOATING(T, prefix, one, infinite, quiet, signaling)                                  \
  template <>                                                                                        \
  struct mr_limits<T, false> : mr_floating {                                                         \
    static constexpr int digits = prefix##_MANT_DIG, digits10 = prefix##_DIG;                        \
    static constexpr int max_digits10 = prefix##_DECIMAL_DIG;                                        \
    static constexpr int min_exponent = prefix##_MIN_EXP, min_exponent10 = prefix##_MIN_10_EXP;      \
    static constexpr int max_exponent = prefix##_MAX_EXP, max_exponent10 = prefix##_MAX_10_EXP;      \
    MR_BOTH static constexpr T min() noexcept { return prefix##_MIN; }                               \
    MR_BOTH static constexpr T max() noexcept { return prefix##_MAX; }                               \
    MR_BOTH static constexpr T lowest() noexcept { return -prefix##_MAX; }                           \
    MR_BOTH static constexpr T epsilon() noexcept { return prefix##_EPSILON; }                       \
    MR_BOTH static constexpr T round_error() noexcept { return one / 2; }                            \
    MR_BOTH static constexpr T infinity() noexcept { return __builtin_bit_cast(T, infinite); }       \
    MR_BOTH static constexpr T quiet_NaN() noexcept { return __builtin_bit_cast(T, quiet); }         \
    MR_BOTH static constexpr T signaling_NaN() noexcept { return __builtin_bit_cast(T, signaling); } \
    MR_BOTH static constexpr T denorm_min() noexcept { return prefix##_TRUE_MIN; }                   \
  };
MR_STD_FLOATING(float, FLT, 1.0f, 0x7f800000, 0x7fc00000, 0x7fa00000)
MR_STD_FLOATING(double, DBL, 1.0, 0x7ff0000000000000ll, 0x7ff8000000000000ll, 0x7ff4000000000000ll)
#undef MR_STD_FLOATING

template <class T>
struct numeric_limits : mr_limits<T, is_integral_v<T>> {};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<volatile T> : numeric_limits<T> {};

}  // namespace std
