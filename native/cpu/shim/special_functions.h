// CUDA's special functions, in double; the float forms round their results.
#pragma once

#include "math_functions.h"

/// One row per function: CUDA's name, and the name of its float form.
#define MR_SPECIAL_1(name, namef) \
  MR_INLINE float namef(float x) { return static_cast<float>(name(static_cast<double>(x))); }

extern "C" double j0(double) noexcept;
extern "C" double j1(double) noexcept;
extern "C" double y0(double) noexcept;
extern "C" double y1(double) noexcept;
extern "C" double jn(int, double) noexcept;
extern "C" double yn(int, double) noexcept;
MR_SPECIAL_1(j0, j0f)
MR_SPECIAL_1(j1, j1f)
MR_SPECIAL_1(y0, y0f)
MR_SPECIAL_1(y1, y1f)
MR_INLINE float jnf(int n, float x) {
  return static_cast<float>(jn(n, x));
}
MR_INLINE float ynf(int n, float x) {
  return static_cast<float>(yn(n, x));
}

extern "C" int ilogb(double) noexcept;
extern "C" int ilogbf(float) noexcept;
extern "C" double scalbln(double, long) noexcept;
extern "C" float scalblnf(float, long) noexcept;
extern "C" long long llrint(double) noexcept;
extern "C" long long llrintf(float) noexcept;
extern "C" long long llround(double) noexcept;
extern "C" long long llroundf(float) noexcept;
MR_INLINE double nan(const char*) {
  return __builtin_nan("");
}
MR_INLINE float nanf(const char*) {
  return __builtin_nanf("");
}

MR_INLINE double norm4d(double a, double b, double c, double d) {
  return hypot(hypot(a, b), hypot(c, d));
}
MR_INLINE float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(sqrt(double(a) * a + double(b) * b + double(c) * c + double(d) * d));
}
MR_INLINE double norm(int n, const double* p) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum = hypot(sum, p[i]);
  return sum;
}
MR_INLINE float normf(int n, const float* p) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += double(p[i]) * p[i];
  return static_cast<float>(sqrt(sum));
}
MR_INLINE double rnorm(int n, const double* p) {
  return 1.0 / norm(n, p);
}
MR_INLINE float rnormf(int n, const float* p) {
  return 1.0f / normf(n, p);
}
MR_INLINE double rnorm3d(double a, double b, double c) {
  return 1.0 / norm3d(a, b, c);
}
MR_INLINE float rnorm3df(float a, float b, float c) {
  return 1.0f / norm3df(a, b, c);
}
MR_INLINE double rnorm4d(double a, double b, double c, double d) {
  return 1.0 / norm4d(a, b, c, d);
}
MR_INLINE float rnorm4df(float a, float b, float c, float d) {
  return 1.0f / norm4df(a, b, c, d);
}
MR_INLINE double rhypot(double a, double b) {
  return 1.0 / hypot(a, b);
}
MR_INLINE float __tanhf(float x) {
  return tanhf(x);
}

extern "C" double remquo(double, double, int*) noexcept;
extern "C" float remquof(float, float, int*) noexcept;

/// Modified Bessel functions of the first kind by their power series, whose terms have one sign.
inline double mr_bessel_series(double x, int order) {
  const double square = 0.25 * x * x;
  double term = 1.0;
  double sum = 1.0;
  for (int k = 1; term > 1e-17 * sum && k < 2000; ++k) {
    term *= square / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}
MR_INLINE double cyl_bessel_i0(double x) {
  return mr_bessel_series(x, 0);
}
MR_INLINE double cyl_bessel_i1(double x) {
  return 0.5 * x * mr_bessel_series(x, 1);
}
MR_SPECIAL_1(cyl_bessel_i0, cyl_bessel_i0f)
MR_SPECIAL_1(cyl_bessel_i1, cyl_bessel_i1f)

/// Inverse of erfc: Newton's method on the logarithm, from the right, where it cannot leave the branch.
inline double erfcinv(double y) {
  if (!(y >= 0.0 && y <= 2.0)) return __builtin_nan("");
  if (y == 0.0) return __builtin_inf();
  if (y == 2.0) return -__builtin_inf();
  if (y > 1.0) return -erfcinv(2.0 - y);
  double x = sqrt(-log(y));
  for (int step = 0; step < 60; ++step) {
    const double value = erfc(x);
    const double by = log(value / y) * value * exp(x * x) / M_2_SQRTPI;
    x += by;
    if (fabs(by) <= 1e-16 * fabs(x)) break;
  }
  return x;
}
/// Inverse of erf.
inline double erfinv(double y) {
  if (!(fabs(y) <= 1.0)) return __builtin_nan("");
  if (y < 0.0) return -erfinv(-y);
  if (y >= 0.5) return erfcinv(1.0 - y);
  double x = y / M_2_SQRTPI;
  for (int step = 0; step < 8; ++step) x -= (erf(x) - y) * exp(x * x) / M_2_SQRTPI;
  return x;
}
/// exp(x * x) * erfc(x); by its continued fraction where erfc underflows.
inline double erfcx(double x) {
  if (x < 20.0) return exp(x * x) * erfc(x);
  double rest = 0.0;
  for (int k = 20; k > 0; --k) rest = 0.5 * k / (x + rest);
  return 0.5 * M_2_SQRTPI / (x + rest);
}
MR_INLINE double normcdf(double x) {
  return 0.5 * erfc(-x * M_SQRT1_2);
}
MR_INLINE double normcdfinv(double p) {
  return -M_SQRT2 * erfcinv(2.0 * p);
}
MR_SPECIAL_1(erfcinv, erfcinvf)
MR_SPECIAL_1(erfinv, erfinvf)
MR_SPECIAL_1(erfcx, erfcxf)
MR_SPECIAL_1(normcdf, normcdff)
MR_SPECIAL_1(normcdfinv, normcdfinvf)
#undef MR_SPECIAL_1
