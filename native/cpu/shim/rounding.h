// Arithmetic and conversions with directed rounding: the nearest result, corrected by the sign of its error, which is
// exact.
#pragma once

#include "conversions.h"

MR_INLINE float mr_next(float from, float to) {
  return nextafterf(from, to);
}
MR_INLINE double mr_next(double from, double to) {
  return nextafter(from, to);
}

/// `nearest` is rounded to nearest even, and the exact result differs from it by `error`. A finite result that
/// overflowed to infinity lies below it.
template <class T>
MR_INLINE T mr_rounded_down(T nearest, T error) {
  return error < 0 ? mr_next(nearest, static_cast<T>(-__builtin_inf())) : nearest;
}
template <class T>
MR_INLINE T mr_rounded_up(T nearest, T error) {
  return error > 0 ? mr_next(nearest, static_cast<T>(__builtin_inf())) : nearest;
}
template <class T>
MR_INLINE T mr_rounded_to_zero(T nearest, T error) {
  return nearest > 0 ? mr_rounded_down(nearest, error) : mr_rounded_up(nearest, error);
}

/// The error of a result. If it overflowed, the operands are finite, unless the infinity is exact.
template <class T>
MR_INLINE T mr_lost(T nearest, T error, bool is_exact_when_infinite) {
  if (nearest - nearest == 0) return error;
  return nearest != nearest || is_exact_when_infinite ? T(0) : -nearest;
}
template <class T>
MR_INLINE bool mr_is_infinite(T x) {
  return x - x != 0;
}
template <class T>
MR_INLINE T mr_sum_error(T x, T y, T sum) {
  const T y_part = mr_rounded(sum - x);
  const T x_part = mr_rounded(sum - y_part);
  const T error = mr_rounded(mr_rounded(x - x_part) + mr_rounded(y - y_part));
  return mr_lost(sum, error, mr_is_infinite(x) || mr_is_infinite(y));
}
template <class T>
MR_INLINE T mr_product_error(T x, T y, T product) {
  return mr_lost(product, static_cast<T>(fma(x, y, -product)), mr_is_infinite(x) || mr_is_infinite(y));
}
template <class T>
MR_INLINE T mr_quotient_error(T x, T y, T quotient) {
  const T rest = static_cast<T>(fma(-quotient, y, x));
  return mr_lost(quotient, y < 0 ? -rest : rest, mr_is_infinite(x) || y == 0);
}
template <class T>
MR_INLINE T mr_root_error(T x, T root) {
  return mr_lost(root, static_cast<T>(fma(-root, root, x)), true);
}

#define MR_DIRECTED(T, prefix, suffix, direction)                                                                   \
  MR_INLINE T __##prefix##add_##suffix(T x, T y) { return direction<T>(x + y, mr_sum_error<T>(x, y, x + y)); }      \
  MR_INLINE T __##prefix##sub_##suffix(T x, T y) { return direction<T>(x - y, mr_sum_error<T>(x, -y, x - y)); }     \
  MR_INLINE T __##prefix##mul_##suffix(T x, T y) { return direction<T>(x * y, mr_product_error<T>(x, y, x * y)); }  \
  MR_INLINE T __##prefix##div_##suffix(T x, T y) { return direction<T>(x / y, mr_quotient_error<T>(x, y, x / y)); } \
  MR_INLINE T __##prefix##rcp_##suffix(T x) { return direction<T>(1 / x, mr_quotient_error<T>(1, x, 1 / x)); }      \
  MR_INLINE T __##prefix##sqrt_##suffix(T x) { return direction<T>(sqrt(x), mr_root_error<T>(x, sqrt(x))); }
MR_DIRECTED(float, f, rd, mr_rounded_down)
MR_DIRECTED(float, f, ru, mr_rounded_up)
MR_DIRECTED(float, f, rz, mr_rounded_to_zero)
MR_DIRECTED(double, d, rd, mr_rounded_down)
MR_DIRECTED(double, d, ru, mr_rounded_up)
MR_DIRECTED(double, d, rz, mr_rounded_to_zero)
#undef MR_DIRECTED
MR_INLINE double __drcp_rn(double x) {
  return 1.0 / x;
}

/// The product is exact in double, and the rounding error of the sum is known.
#define MR_DIRECTED_FMA(suffix, direction)                                           \
  MR_INLINE float __fmaf_##suffix(float x, float y, float z) {                       \
    const double product = static_cast<double>(x) * y;                               \
    const double sum = product + z;                                                  \
    const float nearest = static_cast<float>(sum);                                   \
    const double above = sum - nearest;                                              \
    const double error = above != 0 ? above : mr_sum_error<double>(product, z, sum); \
    return direction<float>(nearest, error < 0 ? -1.0f : error > 0 ? 1.0f : 0.0f);   \
  }
MR_DIRECTED_FMA(rd, mr_rounded_down)
MR_DIRECTED_FMA(ru, mr_rounded_up)
MR_DIRECTED_FMA(rz, mr_rounded_to_zero)
#undef MR_DIRECTED_FMA

/// The error of a double multiply-add is the sum of two doubles (Boldo and Muller); only its sign matters here.
MR_INLINE double mr_fma_error(double x, double y, double z, double nearest) {
  const double product = mr_rounded(x * y);
  const double rest = fma(x, y, -product);
  const double low = mr_rounded(z + rest);
  const double low_error = mr_sum_error<double>(z, rest, low);
  const double sum = mr_rounded(product + low);
  const double error = mr_rounded(mr_rounded(sum - nearest) + mr_sum_error<double>(product, low, sum)) + low_error;
  return mr_lost(nearest, error, mr_is_infinite(x) || mr_is_infinite(y) || mr_is_infinite(z));
}
MR_INLINE double __fma_rd(double x, double y, double z) {
  return mr_rounded_down(fma(x, y, z), mr_fma_error(x, y, z, fma(x, y, z)));
}
MR_INLINE double __fma_ru(double x, double y, double z) {
  return mr_rounded_up(fma(x, y, z), mr_fma_error(x, y, z, fma(x, y, z)));
}
MR_INLINE double __fma_rz(double x, double y, double z) {
  return mr_rounded_to_zero(fma(x, y, z), mr_fma_error(x, y, z, fma(x, y, z)));
}

template <class To, class From>
MR_INLINE To mr_integer_error(From x, To nearest) {
  const __int128 error = static_cast<__int128>(x) - static_cast<__int128>(nearest);
  return error < 0 ? To(-1) : error > 0 ? To(1) : To(0);
}
#define MR_INTEGER_TO(From, name, To)                                                                       \
  MR_INLINE To __##name##_rd(From x) { return mr_rounded_down<To>(To(x), mr_integer_error<To>(x, To(x))); } \
  MR_INLINE To __##name##_ru(From x) { return mr_rounded_up<To>(To(x), mr_integer_error<To>(x, To(x))); }   \
  MR_INLINE To __##name##_rz(From x) { return mr_rounded_to_zero<To>(To(x), mr_integer_error<To>(x, To(x))); }
MR_INTEGER_TO(int, int2float, float)
MR_INTEGER_TO(unsigned, uint2float, float)
MR_INTEGER_TO(long long, ll2float, float)
MR_INTEGER_TO(unsigned long long, ull2float, float)
MR_INTEGER_TO(long long, ll2double, double)
MR_INTEGER_TO(unsigned long long, ull2double, double)
#undef MR_INTEGER_TO

MR_INLINE float mr_narrowing_error(double x, float nearest) {
  if (mr_is_infinite(nearest)) return mr_is_infinite(x) ? 0.0f : -nearest;
  return x < nearest ? -1.0f : x > nearest ? 1.0f : 0.0f;
}
MR_INLINE float __double2float_rd(double x) {
  return mr_rounded_down(static_cast<float>(x), mr_narrowing_error(x, static_cast<float>(x)));
}
MR_INLINE float __double2float_ru(double x) {
  return mr_rounded_up(static_cast<float>(x), mr_narrowing_error(x, static_cast<float>(x)));
}
MR_INLINE float __double2float_rz(double x) {
  return mr_rounded_to_zero(static_cast<float>(x), mr_narrowing_error(x, static_cast<float>(x)));
}
