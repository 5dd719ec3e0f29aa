// Conversions and bit casts. For a float out of range, where C++ leaves the result undefined, these saturate and
// convert NaN to 0, like a GPU.
#pragma once

#include "math_functions.h"

template <class To, class From>
MR_INLINE To mr_saturate(From x) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr int bits = sizeof(To) * 8 - (is_signed ? 1 : 0);
  constexpr To highest =
      static_cast<To>(~static_cast<To>(0)) ^ (is_signed ? static_cast<To>(1ull << (bits & 63)) : To(0));
  constexpr To lowest = is_signed ? static_cast<To>(-highest - 1) : To(0);
  // 2^bits, which every floating-point type holds exactly, unlike `highest`.
  constexpr From limit = static_cast<From>(1ull << (bits - 1)) * 2;
  if (!(x < limit)) return x != x ? To(0) : highest;
  // Without trapping math, g++ turns a conversion to an integer and back into a truncation, which keeps the sign of
  // zero. So values that become zero are not converted.
  if (!is_signed) return x > From(0) ? static_cast<To>(x) : To(0);
  if (x < -limit) return lowest;
  if ((sizeof(From) == sizeof(float) ? __builtin_fabsf(x) : __builtin_fabs(x)) < From(1)) return To(0);
  return static_cast<To>(x);
}

/// One row per target and source type: rz truncates, rn rounds to nearest even, rd rounds down, ru up.
#define MR_FLOAT_TO(Type, name, To)                                        \
  MR_INLINE To __##name##_rz(Type x) { return mr_saturate<To>(x); }        \
  MR_INLINE To __##name##_rn(Type x) { return mr_saturate<To>(rint(x)); }  \
  MR_INLINE To __##name##_rd(Type x) { return mr_saturate<To>(floor(x)); } \
  MR_INLINE To __##name##_ru(Type x) { return mr_saturate<To>(ceil(x)); }
MR_FLOAT_TO(float, float2int, int)
MR_FLOAT_TO(float, float2uint, unsigned)
MR_FLOAT_TO(float, float2ll, long long)
MR_FLOAT_TO(float, float2ull, unsigned long long)
MR_FLOAT_TO(double, double2int, int)
MR_FLOAT_TO(double, double2uint, unsigned)
MR_FLOAT_TO(double, double2ll, long long)
MR_FLOAT_TO(double, double2ull, unsigned long long)
#undef MR_FLOAT_TO

MR_INLINE float __int2float_rn(int x) {
  return static_cast<float>(x);
}
MR_INLINE float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}
MR_INLINE float __ll2float_rn(long long x) {
  return static_cast<float>(x);
}
MR_INLINE float __ull2float_rn(unsigned long long x) {
  return static_cast<float>(x);
}
MR_INLINE double __int2double_rn(int x) {
  return x;
}
MR_INLINE double __uint2double_rn(unsigned x) {
  return x;
}
MR_INLINE double __ll2double_rn(long long x) {
  return static_cast<double>(x);
}
MR_INLINE double __ull2double_rn(unsigned long long x) {
  return static_cast<double>(x);
}
MR_INLINE float __double2float_rn(double x) {
  return static_cast<float>(x);
}

MR_INLINE int __float_as_int(float x) {
  return __builtin_bit_cast(int, x);
}
MR_INLINE unsigned __float_as_uint(float x) {
  return __builtin_bit_cast(unsigned, x);
}
MR_INLINE float __int_as_float(int x) {
  return __builtin_bit_cast(float, x);
}
MR_INLINE float __uint_as_float(unsigned x) {
  return __builtin_bit_cast(float, x);
}
MR_INLINE long long __double_as_longlong(double x) {
  return __builtin_bit_cast(long long, x);
}
MR_INLINE double __longlong_as_double(long long x) {
  return __builtin_bit_cast(double, x);
}
MR_INLINE int __double2hiint(double x) {
  return static_cast<int>(__double_as_longlong(x) >> 32);
}
MR_INLINE int __double2loint(double x) {
  return static_cast<int>(__double_as_longlong(x));
}
MR_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((static_cast<long long>(high) << 32) | static_cast<unsigned>(low));
}
