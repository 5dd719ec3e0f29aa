// Mathematical functions: C's for double and float, C++'s overloads for float and integers, and CUDA's own.
//
// The prototypes are libm's, so that the compiler treats them as builtins and uses instructions where possible.
#pragma once

#include "float_functions.h"
#include "thread_index.h"

/// One argument: name(double), namef(float), name(float), and name(integer), which computes in double.
#define MR_MATH_1(name)                     \
  extern "C" float name##f(float) noexcept; \
  MR_VECTOR_MATH_1(name)
/// The same, if float_functions.h defines the float form.
#define MR_VECTOR_MATH_1(name)                                     \
  extern "C" double name(double) noexcept;                         \
  MR_INLINE float name(float x) { return name##f(x); }             \
  template <class T, class = mr_enable_if_t<mr_is_integral<T>, T>> \
  MR_INLINE double name(T x) {                                     \
    return name(static_cast<double>(x));                           \
  }
MR_MATH_1(sqrt)
MR_VECTOR_MATH_1(cbrt)
MR_VECTOR_MATH_1(exp)
MR_VECTOR_MATH_1(exp2)
MR_VECTOR_MATH_1(expm1)
MR_VECTOR_MATH_1(log)
MR_VECTOR_MATH_1(log2)
MR_VECTOR_MATH_1(log10)
MR_VECTOR_MATH_1(log1p)
MR_VECTOR_MATH_1(sin)
MR_VECTOR_MATH_1(cos)
MR_VECTOR_MATH_1(tan)
MR_VECTOR_MATH_1(asin)
MR_VECTOR_MATH_1(acos)
MR_VECTOR_MATH_1(atan)
MR_VECTOR_MATH_1(sinh)
MR_VECTOR_MATH_1(cosh)
MR_VECTOR_MATH_1(tanh)
MR_VECTOR_MATH_1(asinh)
MR_VECTOR_MATH_1(acosh)
MR_VECTOR_MATH_1(atanh)
MR_MATH_1(floor)
MR_MATH_1(ceil)
MR_MATH_1(round)
MR_MATH_1(trunc)
MR_MATH_1(rint)
MR_MATH_1(nearbyint)
MR_MATH_1(fabs)
MR_MATH_1(erf)
MR_MATH_1(erfc)
MR_MATH_1(tgamma)
MR_MATH_1(lgamma)
MR_MATH_1(logb)
#undef MR_MATH_1
#undef MR_VECTOR_MATH_1

/// The common type of two arithmetic arguments: float if neither is wider, else double.
template <class T, class U>
struct mr_wider {
  using type = double;
};
template <>
struct mr_wider<float, float> {
  using type = float;
};

/// Two arguments of any types. Like CUDA, a float with an integer is float, for pow(x, 2).
#define MR_MATH_2(name)                            \
  extern "C" float name##f(float, float) noexcept; \
  MR_VECTOR_MATH_2(name)
#define MR_VECTOR_MATH_2(name)                                     \
  extern "C" double name(double, double) noexcept;                 \
  MR_INLINE float name(float x, float y) { return name##f(x, y); } \
  template <class T, class U>                                      \
  MR_INLINE typename mr_wider<T, U>::type name(T x, U y) {         \
    return name(static_cast<double>(x), static_cast<double>(y));   \
  }
MR_VECTOR_MATH_2(pow)
MR_VECTOR_MATH_2(atan2)
MR_VECTOR_MATH_2(hypot)
MR_MATH_2(fmod)
MR_MATH_2(remainder)
MR_MATH_2(copysign)
MR_MATH_2(fdim)
MR_MATH_2(nextafter)
#undef MR_MATH_2
#undef MR_VECTOR_MATH_2

MR_INLINE float pow(float x, int y) {
  return powf(x, static_cast<float>(y));
}

extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
MR_INLINE float fma(float x, float y, float z) {
  return fmaf(x, y, z);
}
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
MR_INLINE float ldexp(float x, int e) {
  return ldexpf(x, e);
}
extern "C" double scalbn(double, int) noexcept;
extern "C" float scalbnf(float, int) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
extern "C" void sincos(double, double*, double*) noexcept;
extern "C" long lround(double) noexcept;
extern "C" long lroundf(float) noexcept;
extern "C" long lrint(double) noexcept;
extern "C" long lrintf(float) noexcept;
extern "C" long long llround(double) noexcept;
extern "C" long long llrint(double) noexcept;

template <class T>
MR_INLINE bool isnan(T x) {
  return __builtin_isnan(x);
}
template <class T>
MR_INLINE bool isinf(T x) {
  return __builtin_isinf(x);
}
template <class T>
MR_INLINE bool isfinite(T x) {
  return __builtin_isfinite(x);
}
template <class T>
MR_INLINE bool signbit(T x) {
  return __builtin_signbit(x);
}

MR_INLINE float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
MR_INLINE double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
MR_INLINE float rsqrt(float x) {
  return rsqrtf(x);
}
MR_INLINE float rcbrtf(float x) {
  return 1.0f / cbrtf(x);
}
MR_INLINE double rcbrt(double x) {
  return 1.0 / cbrt(x);
}
MR_INLINE double exp10(double x) {
  return pow(10.0, x);
}
/// Whole turns are subtracted exactly before the product with pi, so multiples of a half give exact results.
MR_INLINE double mr_half_turns(double x) {
  return x - 2.0 * rint(0.5 * x);
}
MR_INLINE double sinpi(double x) {
  const double turn = mr_half_turns(x);
  return sin(M_PI * (fabs(turn) > 0.5 ? copysign(1.0, turn) - turn : turn));
}
MR_INLINE double cospi(double x) {
  return sin(M_PI * (0.5 - fabs(mr_half_turns(x))));
}
MR_INLINE float sinpif(float x) {
  return static_cast<float>(sinpi(x));
}
MR_INLINE float cospif(float x) {
  return static_cast<float>(cospi(x));
}
MR_INLINE void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
MR_INLINE void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
/// In double the squares of floats neither overflow nor vanish, and hypot scales those of doubles.
MR_INLINE float norm3df(float x, float y, float z) {
  return static_cast<float>(sqrt(double(x) * x + double(y) * y + double(z) * z));
}
MR_INLINE double norm3d(double x, double y, double z) {
  return hypot(hypot(x, y), z);
}
MR_INLINE float rhypotf(float x, float y) {
  return 1.0f / hypotf(x, y);
}

// The fast forms are the exact ones here, because less precision would not be faster.
MR_INLINE float __expf(float x) {
  return expf(x);
}
MR_INLINE float __exp10f(float x) {
  return exp10f(x);
}
MR_INLINE float __logf(float x) {
  return logf(x);
}
MR_INLINE float __log2f(float x) {
  return log2f(x);
}
MR_INLINE float __log10f(float x) {
  return log10f(x);
}
MR_INLINE float __sinf(float x) {
  return sinf(x);
}
MR_INLINE float __cosf(float x) {
  return cosf(x);
}
MR_INLINE float __tanf(float x) {
  return tanf(x);
}
MR_INLINE void __sincosf(float x, float* s, float* c) {
  sincosf(x, s, c);
}
MR_INLINE float __powf(float x, float y) {
  return powf(x, y);
}
MR_INLINE float __fdividef(float x, float y) {
  return x / y;
}
MR_INLINE float fdividef(float x, float y) {
  return x / y;
}
MR_INLINE float __saturatef(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

/// Prevents the fusion of a product into a multiply-add, which these intrinsics exclude.
template <class T>
MR_INLINE T mr_rounded(T x) {
#if defined(__clang__) || __GNUC__ < 12
  __asm__("" : "+x"(x));
  return x;
#else
  return __builtin_assoc_barrier(x);
#endif
}
MR_INLINE float __fadd_rn(float x, float y) {
  return mr_rounded(mr_rounded(x) + mr_rounded(y));
}
MR_INLINE float __fsub_rn(float x, float y) {
  return mr_rounded(mr_rounded(x) - mr_rounded(y));
}
MR_INLINE float __fmul_rn(float x, float y) {
  return mr_rounded(x * y);
}
MR_INLINE float __fdiv_rn(float x, float y) {
  return x / y;
}
MR_INLINE float __fsqrt_rn(float x) {
  return sqrtf(x);
}
MR_INLINE float __frsqrt_rn(float x) {
  return rsqrtf(x);
}
MR_INLINE float __frcp_rn(float x) {
  return 1.0f / x;
}
MR_INLINE float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
MR_INLINE double __dadd_rn(double x, double y) {
  return mr_rounded(mr_rounded(x) + mr_rounded(y));
}
MR_INLINE double __dsub_rn(double x, double y) {
  return mr_rounded(mr_rounded(x) - mr_rounded(y));
}
MR_INLINE double __dmul_rn(double x, double y) {
  return mr_rounded(x * y);
}
MR_INLINE double __ddiv_rn(double x, double y) {
  return x / y;
}
MR_INLINE double __dsqrt_rn(double x) {
  return sqrt(x);
}
MR_INLINE double __fma_rn(double x, double y, double z) {
  return fma(x, y, z);
}

// A comparison vectorises, and a call of libm does not. As in libm and on a GPU, a number wins over NaN.
MR_INLINE float fminf(float x, float y) {
  return x < y || y != y ? x : y;
}
MR_INLINE float fmaxf(float x, float y) {
  return x > y || y != y ? x : y;
}
MR_INLINE double fmin(double x, double y) {
  return x < y || y != y ? x : y;
}
MR_INLINE double fmax(double x, double y) {
  return x > y || y != y ? x : y;
}
MR_INLINE float fmin(float x, float y) {
  return fminf(x, y);
}
MR_INLINE float fmax(float x, float y) {
  return fmaxf(x, y);
}
MR_INLINE float min(float x, float y) {
  return fminf(x, y);
}
MR_INLINE float max(float x, float y) {
  return fmaxf(x, y);
}
MR_INLINE double min(double x, double y) {
  return fmin(x, y);
}
MR_INLINE double max(double x, double y) {
  return fmax(x, y);
}
MR_INLINE double min(float x, double y) {
  return min(static_cast<double>(x), y);
}
MR_INLINE double max(float x, double y) {
  return max(static_cast<double>(x), y);
}
MR_INLINE double min(double x, float y) {
  return min(x, static_cast<double>(y));
}
MR_INLINE double max(double x, float y) {
  return max(x, static_cast<double>(y));
}

template <class T>
MR_INLINE T mr_least(T x, T y) {
  return x < y ? x : y;
}
template <class T>
MR_INLINE T mr_greatest(T x, T y) {
  return x < y ? y : x;
}
/// Integers of two types: unsigned wins, as in CUDA.
#define MR_MIN_MAX(R, A, B)                               \
  MR_INLINE R min(A x, B y) { return mr_least<R>(x, y); } \
  MR_INLINE R max(A x, B y) { return mr_greatest<R>(x, y); }
MR_MIN_MAX(int, int, int)
MR_MIN_MAX(unsigned, unsigned, unsigned)
MR_MIN_MAX(unsigned, int, unsigned)
MR_MIN_MAX(unsigned, unsigned, int)
MR_MIN_MAX(long, long, long)
MR_MIN_MAX(unsigned long, unsigned long, unsigned long)
MR_MIN_MAX(unsigned long, long, unsigned long)
MR_MIN_MAX(unsigned long, unsigned long, long)
MR_MIN_MAX(long long, long long, long long)
MR_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
MR_MIN_MAX(unsigned long long, long long, unsigned long long)
MR_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef MR_MIN_MAX
MR_INLINE unsigned umin(unsigned x, unsigned y) {
  return min(x, y);
}
MR_INLINE unsigned umax(unsigned x, unsigned y) {
  return max(x, y);
}

MR_INLINE long long llmin(long long x, long long y) {
  return min(x, y);
}
MR_INLINE long long llmax(long long x, long long y) {
  return max(x, y);
}
MR_INLINE unsigned long long ullmin(unsigned long long x, unsigned long long y) {
  return min(x, y);
}
MR_INLINE unsigned long long ullmax(unsigned long long x, unsigned long long y) {
  return max(x, y);
}

MR_INLINE int abs(int x) {
  return x < 0 ? -x : x;
}
MR_INLINE long abs(long x) {
  return x < 0 ? -x : x;
}
MR_INLINE long long abs(long long x) {
  return x < 0 ? -x : x;
}
MR_INLINE long labs(long x) {
  return abs(x);
}
MR_INLINE long long llabs(long long x) {
  return abs(x);
}
MR_INLINE float abs(float x) {
  return fabsf(x);
}
MR_INLINE double abs(double x) {
  return fabs(x);
}
