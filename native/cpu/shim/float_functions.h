// Functions of float that vectorise: no branches, no tables, no calls. A loop over threads, the SIMD form and a single
// thread run the same code, so their results are equal (docs/decisions/0057-float-functions.md).
//
// What costs most in kernels is computed in float, the rest in double and rounded once. Each product that is added is
// written as mr_fused, because a compiler may fuse the others in one form and not in another.
#pragma once

#include "types.h"

extern "C" double sin(double) noexcept;
extern "C" double cos(double) noexcept;
extern "C" double tan(double) noexcept;
extern "C" double sqrt(double) noexcept;

MR_INLINE unsigned mr_float_bits(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
MR_INLINE float mr_float_from(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}
MR_INLINE unsigned long long mr_float_bits(double x) {
  unsigned long long bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
MR_INLINE double mr_float_from(unsigned long long bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

/// a * b + c, rounded once if the processor can. libm's function is slow without the instruction.
MR_INLINE float mr_fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
MR_INLINE double mr_fused(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
/// c0 + x (c1 + x (c2 + ...))
template <class T>
MR_INLINE T mr_polynomial(T, T c) {
  return c;
}
template <class T, class... C>
MR_INLINE T mr_polynomial(T x, T c, C... more) {
  return mr_fused(mr_polynomial(x, T(more)...), x, c);
}

MR_INLINE float mr_magnitude(float x) {
  return mr_float_from(mr_float_bits(x) & 0x7fffffffu);
}
MR_INLINE float mr_signed_as(float x, float sign) {
  return mr_float_from(mr_float_bits(x) | (mr_float_bits(sign) & 0x80000000u));
}

// The sum with these has the nearest integer in its lowest bits.
constexpr float mr_whole_float = 12582912.0f;
constexpr double mr_whole_double = 6755399441055744.0;
constexpr float mr_float_infinity = __builtin_huge_valf();
constexpr float mr_float_nan = __builtin_nanf("");
/// Below its square root of 3 ulp, x^3 / 6 and its kin are all that a function adds to x.
constexpr float mr_tiny = 0x1p-12f;

MR_INLINE float expf(float x) {
  // At the bounds the result is infinite or zero. NaN stays.
  const float inside = x > 130.0f ? 130.0f : x < -150.0f ? -150.0f : x;
  const float sum = mr_fused(inside, 1.44269504f, mr_whole_float);
  const float n = sum - mr_whole_float;
  // ln 2 in two parts, of which the product of the first is exact.
  const float r = mr_fused(n, 2.12194440e-4f, mr_fused(n, -0.693359375f, inside));
  const float q =
      mr_polynomial(r, 0.5f, 0.16666573286056519f, 0.04166686162352562f, 0.008363739587366581f, 0.001390153425745666f);
  const float p = mr_fused(q, r * r, r) + 1.0f;
  // In two steps, because 2^n may be subnormal or too large.
  const int whole = static_cast<int>(mr_float_bits(sum)) - 0x4b400000;
  const int half = whole >> 1;
  return p * mr_float_from(static_cast<unsigned>(half + 127) << 23) *
         mr_float_from(static_cast<unsigned>(whole - half + 127) << 23);
}

MR_INLINE float logf(float x) {
  const bool is_small = x < 0x1p-126f;
  const float scaled = is_small ? x * 0x1p23f : x;
  // x = 2^k m, m in [2/3, 4/3).
  const unsigned moved = mr_float_bits(scaled) + (0x3f800000u - 0x3f2aaaabu);
  const float k = static_cast<float>(static_cast<int>(moved >> 23) - (is_small ? 150 : 127));
  const float f = mr_float_from((moved & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
  const float square = f * f;
  const float q = mr_polynomial(f, 0.3333333432674408f, -0.24999943375587463f, 0.1999991089105606f,
                                -0.16673363745212555f, 0.14293554425239563f, -0.12287867069244385f,
                                0.10891162604093552f, -0.12426616251468658f, 0.11441462486982346f);
  const float rest = mr_fused(square, mr_fused(f, q, -0.5f), k * -2.12194440e-4f);
  const float sum = mr_fused(k, 0.693359375f, f + rest);
  const float result = x > 0.0f ? sum : x == 0.0f ? -mr_float_infinity : mr_float_nan;
  return x < mr_float_infinity ? result : x > 0.0f ? x : mr_float_nan;
}

MR_INLINE float tanhf(float x) {
  const float a = mr_magnitude(x);
  const float square = x * x;
  const float q = mr_polynomial(square, -0.333333283662796f, 0.13332770764827728f, -0.05385095253586769f,
                                0.02099735662341118f, -0.006096941418945789f);
  const float near = mr_fused(a * square, q, a);
  const float far = 1.0f - 2.0f / (expf(a + a) + 1.0f);
  return mr_signed_as(a < 0.625f ? near : far, x);
}

// sin, cos and tan: up to this limit, the quarter turns of an argument have 20 bits, and their product with the first
// 33 bits of pi / 2 is exact in double.
constexpr float mr_most_turned = 0x1p20f;
struct mr_quarter_turns {
  double rest;
  unsigned count;
};
MR_INLINE mr_quarter_turns mr_quarter_turns_of(float x) {
  const double sum = mr_fused(static_cast<double>(x), 0.63661977236758134308, mr_whole_double);
  const double n = sum - mr_whole_double;
  const double rest = mr_fused(n, -6.07710050650619224932e-11, mr_fused(n, -1.57079632673412561417, double(x)));
  return {rest, static_cast<unsigned>(mr_float_bits(sum))};
}
/// Cosine instead of sine for odd `count`.
MR_INLINE float mr_sine_of(float r, unsigned count) {
  const float z = r * r;
  const float s = mr_fused(
      r * z,
      mr_polynomial(z, -0.1666666716337204f, 0.008333331905305386f, -0.00019840076855780797f, 2.7248797778156586e-06f),
      r);
  const float c =
      mr_fused(z * z, mr_polynomial(z, 0.0416666641831398f, -0.0013888298999518156f, 2.454710192978382e-05f),
               mr_fused(z, -0.5f, 1.0f));
  return mr_float_from(mr_float_bits((count & 1) != 0 ? c : s) ^ ((count & 2) << 30));
}
MR_INLINE float mr_near_sinf(float x) {
  const mr_quarter_turns turns = mr_quarter_turns_of(x);
  return x == 0.0f ? x : mr_sine_of(static_cast<float>(turns.rest), turns.count);
}
MR_INLINE float mr_near_cosf(float x) {
  const mr_quarter_turns turns = mr_quarter_turns_of(x);
  return mr_sine_of(static_cast<float>(turns.rest), turns.count + 1);
}
MR_INLINE float mr_near_tanf(float x) {
  const mr_quarter_turns turns = mr_quarter_turns_of(x);
  const double r = turns.rest;
  const double z = r * r;
  const double s = mr_fused(r * z,
                            mr_polynomial(z, -0.1666666666666382, 0.008333333331041021, -0.0001984126688320742,
                                          2.7555981436187106e-06, -2.4804807410536558e-08),
                            r);
  const double c = mr_fused(z * z,
                            mr_polynomial(z, 0.04166666666666464, -0.0013888888887254288, 2.4801585190213895e-05,
                                          -2.7556363759777e-07, 2.0700074951939173e-09),
                            mr_fused(z, -0.5, 1.0));
  const bool is_odd = (turns.count & 1) != 0;
  return x == 0.0f ? x : static_cast<float>((is_odd ? -c : s) / (is_odd ? s : c));
}
MR_INLINE float sinf(float x) {
  return mr_magnitude(x) <= mr_most_turned ? mr_near_sinf(x) : static_cast<float>(sin(static_cast<double>(x)));
}
MR_INLINE float cosf(float x) {
  return mr_magnitude(x) <= mr_most_turned ? mr_near_cosf(x) : static_cast<float>(cos(static_cast<double>(x)));
}
MR_INLINE float tanf(float x) {
  return mr_magnitude(x) <= mr_most_turned ? mr_near_tanf(x) : static_cast<float>(tan(static_cast<double>(x)));
}
MR_INLINE void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}

// The functions below are computed in double, with an error of 2^-42, and rounded once.

/// e^r 2^n for r in +-0.35, n in the lowest bits of `sum`.
MR_INLINE double mr_scaled_exp(double r, double sum) {
  const double q = mr_polynomial(r, 0.4999999999999994, 0.1666666666664854, 0.04166666666682788, 0.008333333354026418,
                                 0.0013888888834182743, 0.0001984120768123891, 2.48016301352888e-05,
                                 2.7625846125566392e-06, 2.757543517362554e-07);
  const double p = mr_fused(q, r * r, r) + 1.0;
  return mr_float_from(mr_float_bits(p) + (mr_float_bits(sum) << 52));
}
/// Beyond the bounds, a float is infinite or zero.
MR_INLINE double mr_bounded_power(double x) {
  return x > 400.0 ? 400.0 : x < -400.0 ? -400.0 : x;
}
MR_INLINE double mr_exp(double x) {
  const double inside = mr_bounded_power(x);
  const double sum = mr_fused(inside, 1.4426950408889634, mr_whole_double);
  const double n = sum - mr_whole_double;
  // ln 2 in two parts, the first of 32 bits.
  return mr_scaled_exp(mr_fused(n, -1.90821492927058770002e-10, mr_fused(n, -6.93147180369123816490e-01, inside)), sum);
}
MR_INLINE double mr_exp2(double x) {
  const double inside = mr_bounded_power(x);
  const double sum = inside + mr_whole_double;
  return mr_scaled_exp((inside - (sum - mr_whole_double)) * 0.69314718055994530942, sum);
}
/// log x = k ln 2 + rest, for normal positive x.
struct mr_logarithm {
  double k, rest;
};
MR_INLINE mr_logarithm mr_logarithm_of(double x) {
  // x = 2^k m, m in [sqrt(1/2), sqrt(2)).
  const unsigned long long moved = mr_float_bits(x) + (0x3ff0000000000000ull - 0x3fe6a09e00000000ull);
  const double m = mr_float_from((moved & 0x000fffffffffffffull) + 0x3fe6a09e00000000ull);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  const double q = mr_polynomial(z, 0.666666666666619, 0.40000000011565356, 0.28571424026156184, 0.2222287432183895,
                                 0.18139673543082935, 0.16629597677522948);
  return {static_cast<double>(static_cast<int>(moved >> 52) - 1023), mr_fused(s * z, q, s + s)};
}
/// What a logarithm is of zero, negative numbers, infinity and NaN.
MR_INLINE double mr_logarithm_unless(double x, double logarithm) {
  const double result = x > 0.0 ? logarithm : x == 0.0 ? -__builtin_huge_val() : __builtin_nan("");
  return x < __builtin_huge_val() ? result : x > 0.0 ? x : __builtin_nan("");
}
MR_INLINE double mr_log(double x) {
  const mr_logarithm l = mr_logarithm_of(x);
  return mr_logarithm_unless(x, mr_fused(l.k, 0.69314718055994530942, l.rest));
}
/// For normal positive x.
MR_INLINE double mr_log2(double x) {
  const mr_logarithm l = mr_logarithm_of(x);
  return mr_fused(l.rest, 1.4426950408889634074, l.k);
}

MR_INLINE float exp2f(float x) {
  return static_cast<float>(mr_exp2(x));
}
MR_INLINE float exp10f(float x) {
  return static_cast<float>(mr_exp2(x * 3.32192809488736234787));
}
MR_INLINE float log2f(float x) {
  return static_cast<float>(mr_logarithm_unless(x, mr_log2(x)));
}
MR_INLINE float log10f(float x) {
  const mr_logarithm l = mr_logarithm_of(x);
  return static_cast<float>(
      mr_logarithm_unless(x, mr_fused(l.k, 0.30102999566398119521, l.rest * 0.43429448190325182765)));
}
/// `large` if x is not tiny, else x + x^2 `squared` + x^3 `cubed`. Both have the sign of x, also of zero.
MR_INLINE float mr_unless_tiny(float x, double squared, double cubed, double large) {
  const double tiny = mr_fused(double(x) * x, mr_fused(double(x), cubed, squared), double(x));
  return mr_signed_as(static_cast<float>(mr_magnitude(x) < mr_tiny ? tiny : large), x);
}
MR_INLINE float expm1f(float x) {
  return mr_unless_tiny(x, 0.5, 1.0 / 6, mr_exp(x) - 1.0);
}
MR_INLINE float log1pf(float x) {
  return mr_unless_tiny(x, -0.5, 1.0 / 3, mr_log(1.0 + x));
}
MR_INLINE float sinhf(float x) {
  const double e = mr_exp(x);
  return mr_unless_tiny(x, 0.0, 1.0 / 6, (e - 1.0 / e) * 0.5);
}
MR_INLINE float coshf(float x) {
  const double e = mr_exp(x);
  return static_cast<float>((e + 1.0 / e) * 0.5);
}
MR_INLINE float asinhf(float x) {
  const double a = mr_magnitude(x);
  return mr_signed_as(mr_unless_tiny(mr_magnitude(x), 0.0, -1.0 / 6, mr_log(a + sqrt(mr_fused(a, a, 1.0)))), x);
}
MR_INLINE float acoshf(float x) {
  const double a = x;
  const double root = sqrt(mr_fused(a, a, -1.0));
  return x >= 1.0f ? static_cast<float>(mr_log(a + root)) : mr_float_nan;
}
MR_INLINE float atanhf(float x) {
  return mr_unless_tiny(x, 0.0, 1.0 / 3, 0.5 * mr_log((1.0 + x) / (1.0 - x)));
}
MR_INLINE float cbrtf(float x) {
  const float a = mr_magnitude(x);
  const float root = static_cast<float>(mr_exp2(mr_log2(a) * (1.0 / 3)));
  return mr_signed_as((a < mr_float_infinity) & (a > 0.0f) ? root : a, x);
}
MR_INLINE float hypotf(float x, float y) {
  const float length = static_cast<float>(sqrt(mr_fused(double(x), double(x), double(y) * y)));
  const bool is_infinite = (mr_magnitude(x) == mr_float_infinity) | (mr_magnitude(y) == mr_float_infinity);
  return is_infinite ? mr_float_infinity : length;
}
/// For t in 0 to 1.
MR_INLINE double mr_atan(double t) {
  const double z = t * t;
  const double q = mr_polynomial(z, -0.33333333332404214, 0.1999999967919118, -0.14285695793816555, 0.1111068853214677,
                                 -0.090858336996326, 0.07655464300080805, -0.06491206009026146, 0.053040802639806386,
                                 -0.03891841788564547, 0.023404834842161715, -0.010359829283845379,
                                 0.0029142223440654647, -0.0003842860304672513);
  return mr_fused(t * z, q, t);
}
constexpr double mr_pi = 3.14159265358979323846;
MR_INLINE float atanf(float x) {
  const double a = mr_magnitude(x);
  const bool is_large = a > 1.0;
  const double angle = mr_atan(is_large ? 1.0 / a : a);
  return mr_signed_as(static_cast<float>(is_large ? mr_pi / 2 - angle : angle), x);
}
MR_INLINE float atan2f(float y, float x) {
  const float a = mr_magnitude(x), b = mr_magnitude(y);
  const bool is_steep = b > a;
  const double over = is_steep ? a : b, under = is_steep ? b : a;
  // Equal infinities and equal zeros: 45 degrees and 0.
  const double ratio = over == under ? (over == 0.0 ? 0.0 : 1.0) : over / under;
  const double angle = mr_atan((a == a) & (b == b) ? ratio : double(x) + y);
  const double first = is_steep ? mr_pi / 2 - angle : angle;
  return mr_signed_as(static_cast<float>((mr_float_bits(x) >> 31) != 0 ? mr_pi - first : first), y);
}
/// For t in 0 to 1/2.
MR_INLINE double mr_asin(double t, double z) {
  return mr_fused(t * z,
                  mr_polynomial(z, 0.16666666665419771, 0.07500000628843001, 0.04464233902014264, 0.030398106168723286,
                                0.022127003474754936, 0.019338397480478164, 0.005349154770556197, 0.02941323201321211),
                  t);
}
MR_INLINE float asinf(float x) {
  const double a = mr_magnitude(x);
  const bool is_large = a > 0.5;
  const double z = is_large ? (1.0 - a) * 0.5 : a * a;
  const double angle = mr_asin(is_large ? sqrt(z) : a, z);
  return mr_signed_as(static_cast<float>(is_large ? mr_pi / 2 - 2 * angle : angle), x);
}
MR_INLINE float acosf(float x) {
  const double a = mr_magnitude(x);
  const bool is_large = a > 0.5;
  const double z = is_large ? (1.0 - a) * 0.5 : a * a;
  const double angle = mr_asin(is_large ? sqrt(z) : a, z);
  const double first = is_large ? 2 * angle : mr_pi / 2 - angle;
  return static_cast<float>((mr_float_bits(x) >> 31) != 0 ? mr_pi - first : first);
}
MR_INLINE float powf(float x, float y) {
  const float a = mr_magnitude(x), b = mr_magnitude(y);
  const float power = static_cast<float>(mr_exp2(double(y) * mr_log2(a)));
  // Floats from 2^24 are even.
  const int whole = static_cast<int>(b < 0x1p24f ? y : 0.0f);
  const bool is_whole = (b >= 0x1p24f) | (static_cast<float>(whole) == y);
  const unsigned sign = is_whole ? mr_float_bits(x) & (static_cast<unsigned>(whole) << 31) : 0;
  const float of_finite = (x < 0.0f) & !is_whole ? mr_float_nan : power;
  // 0 and infinity, whose power is of either kind, and NaN.
  const float of_others = (a == 0.0f) == (y < 0.0f) ? mr_float_infinity : 0.0f;
  const float size = (a > 0.0f) & (a < mr_float_infinity) ? of_finite : a == a ? of_others : a;
  const float result = y == y ? mr_float_from(mr_float_bits(size) ^ sign) : y;
  // Also for NaN.
  const bool is_one = (y == 0.0f) | (x == 1.0f) | ((a == 1.0f) & (b == mr_float_infinity));
  return is_one ? 1.0f : result;
}
