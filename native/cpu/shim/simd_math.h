// Arithmetic of SIMD lanes (simd.h) that needs more than an operator. Every lane's result equals the scalar function's,
// bit for bit.
#pragma once

#include "simd_memory.h"

// Results of inactive lanes are unspecified.
#define MR_LANE_BY_LANE(T, expression)        \
  mr_spilled<T> result;                       \
  MR_EACH(lane) result.of[lane] = expression; \
  return mr_load(result.of);

static MR_INLINE mr_f32 mr_sqrt(mr_f32 x) {
#if defined(__AVX512F__) && MR_WIDTH == 16 && defined(__clang__)
  return __builtin_ia32_sqrtps512(x, 4);
#elif defined(__AVX512F__) && MR_WIDTH == 16
  return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#elif defined(__AVX2__) && MR_WIDTH == 8
  return __builtin_ia32_sqrtps256(x);
#elif defined(__SSE2__) && MR_WIDTH == 4
  return __builtin_ia32_sqrtps(x);
#else
  MR_LANE_BY_LANE(float, sqrtf(x[lane]))
#endif
}
static MR_INLINE mr_f64 mr_sqrt(mr_f64 x) {
#if defined(__AVX512F__) && MR_WIDTH == 8 && defined(__clang__)
  return __builtin_ia32_sqrtpd512(x, 4);
#elif defined(__AVX512F__) && MR_WIDTH == 8
  return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4);
#elif defined(__AVX2__) && MR_WIDTH == 4
  return __builtin_ia32_sqrtpd256(x);
#else
  MR_LANE_BY_LANE(double, sqrt(x[lane]))
#endif
}

/// 1: down, 2: up, 3: toward zero.
template <int Direction>
static MR_INLINE mr_f32 mr_rounded_vector(mr_f32 x) {
#if defined(__AVX512F__) && MR_WIDTH == 16
  return __builtin_ia32_rndscaleps_mask(x, Direction | 8, x, -1, 4);
#elif defined(__AVX2__) && MR_WIDTH == 8
  return __builtin_ia32_roundps256(x, Direction | 8);
#elif defined(__SSE4_1__) && MR_WIDTH == 4
  return __builtin_ia32_roundps(x, Direction | 8);
#else
  MR_LANE_BY_LANE(float, Direction == 1 ? floorf(x[lane]) : Direction == 2 ? ceilf(x[lane]) : truncf(x[lane]))
#endif
}
template <int Direction>
static MR_INLINE mr_f64 mr_rounded_vector(mr_f64 x) {
#if defined(__AVX512F__) && MR_WIDTH == 8
  return __builtin_ia32_rndscalepd_mask(x, Direction | 8, x, -1, 4);
#elif defined(__AVX2__) && MR_WIDTH == 4
  return __builtin_ia32_roundpd256(x, Direction | 8);
#else
  MR_LANE_BY_LANE(double, Direction == 1 ? floor(x[lane]) : Direction == 2 ? ceil(x[lane]) : trunc(x[lane]))
#endif
}

static MR_INLINE mr_f32 mr_fma(mr_f32 a, mr_f32 b, mr_f32 c) {
#if defined(__AVX512F__) && MR_WIDTH == 16
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#elif defined(__FMA__) && MR_WIDTH == 8
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  MR_LANE_BY_LANE(float, fmaf(a[lane], b[lane], c[lane]))
#endif
}
static MR_INLINE mr_f64 mr_fma(mr_f64 a, mr_f64 b, mr_f64 c) {
#if defined(__AVX512F__) && MR_WIDTH == 8
  return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
#elif defined(__FMA__) && MR_WIDTH == 4
  return __builtin_ia32_vfmaddpd256(a, b, c);
#else
  MR_LANE_BY_LANE(double, fma(a[lane], b[lane], c[lane]))
#endif
}

#define MR_LANE_ORDER(name, T)                                                                         \
  static MR_INLINE mr_##name mr_min(mr_##name a, mr_##name b) { return mr_choose(mr_lt(a, b), a, b); } \
  static MR_INLINE mr_##name mr_max(mr_##name a, mr_##name b) { return mr_choose(mr_gt(a, b), a, b); }
#define MR_LANE_FLOAT(name, T, bits, sign)                                                           \
  static MR_INLINE mr_##name mr_absolute(mr_##name x) { return (mr_##name)((bits)x & ~(bits)sign); } \
  static MR_INLINE mr_##name mr_sign(mr_##name x) {                                                  \
    const mr_##name zero{};                                                                          \
    return mr_choose(mr_gt(x, zero), zero + T(1), mr_choose(mr_lt(x, zero), zero - T(1), x));        \
  }                                                                                                  \
  static MR_INLINE mr_##name mr_negated(mr_##name x) { return (mr_##name)((bits)x ^ (bits)sign); }
#if defined(MR_HAS_MASKS) && MR_WIDTH == 16
MR_LANE_ORDER(i32, int)
MR_LANE_ORDER(u32, unsigned)
MR_LANE_ORDER(f32, float)
#else
MR_LANE_TYPES(MR_LANE_ORDER)
MR_LANE_FLOAT(f64, double, mr_u64, mr_u64_of(1ull << 63))
#endif
MR_LANE_FLOAT(f32, float, mr_u32, mr_u32_of(1u << 31))
#undef MR_LANE_ORDER
#undef MR_LANE_FLOAT

static MR_INLINE mr_i32 mr_absolute(mr_i32 x) {
  return mr_choose(mr_lt(x, mr_i32{}), (mr_i32)(-(mr_u32)x), x);
}
static MR_INLINE mr_i32 mr_sign(mr_i32 x) {
  return mr_choose(mr_gt(x, mr_i32{}), mr_i32_of(1), x >> 31);
}
static MR_INLINE mr_u32 mr_sign(mr_u32 x) {
  return mr_choose(mr_gt(x, mr_u32{}), mr_u32_of(1), mr_u32{});
}

/// Truncates, saturates, and converts NaN to 0.
static MR_INLINE mr_i32 mr_to_i32(mr_f32 x) {
  const mr_lane_mask is_inside = mr_ge(x, mr_f32_of(-2147483648.0f)) & mr_lt(x, mr_f32_of(2147483648.0f));
  const mr_i32 whole = __builtin_convertvector(mr_choose(is_inside, x, mr_f32{}), mr_i32);
  const mr_i32 beyond = mr_choose(mr_gt(x, mr_f32{}), mr_i32_of(2147483647), mr_i32_of(-2147483647 - 1));
  return mr_choose(is_inside, whole, mr_choose(mr_eq(x, x), beyond, mr_i32{}));
}
static MR_INLINE mr_u32 mr_to_u32(mr_f32 x) {
  const mr_lane_mask is_inside = mr_gt(x, mr_f32{}) & mr_lt(x, mr_f32_of(4294967296.0f));
  const mr_u32 whole = __builtin_convertvector(mr_choose(is_inside, x, mr_f32{}), mr_u32);
  return mr_choose(mr_ge(x, mr_f32_of(4294967296.0f)), mr_u32_of(4294967295u), whole);
}

static MR_INLINE mr_f32 mr_with_sign_of(mr_f32 sign, mr_f32 x) {
  return (mr_f32)((mr_u32)x | ((mr_u32)sign & 0x80000000u));
}
static MR_INLINE mr_f64 mr_with_sign_of(mr_f64 sign, mr_f64 x) {
  return (mr_f64)((mr_u64)x | ((mr_u64)sign & 0x8000000000000000ull));
}
/// The functions of float_functions.h. The compiler makes vector instructions of these loops.
#define MR_LANES_OF_1(name)                                                             \
  static MR_INLINE mr_f32 mr_##name(mr_f32 x) {                                         \
    const mr_spilled<float> given = mr_spill(x);                                        \
    mr_spilled<float> result;                                                           \
    for (int lane = 0; lane < MR_WIDTH; ++lane) result.of[lane] = name(given.of[lane]); \
    return mr_load(result.of);                                                          \
  }
#define MR_LANES_OF_2(name)                                                                              \
  static MR_INLINE mr_f32 mr_##name(mr_f32 x, mr_f32 y) {                                                \
    const mr_spilled<float> first = mr_spill(x), second = mr_spill(y);                                   \
    mr_spilled<float> result;                                                                            \
    for (int lane = 0; lane < MR_WIDTH; ++lane) result.of[lane] = name(first.of[lane], second.of[lane]); \
    return mr_load(result.of);                                                                           \
  }
/// Lanes beyond the limit are rare.
#define MR_LANES_OF_TURNS(name)                                                   \
  MR_LANES_OF_1(mr_near_##name)                                                   \
  static MR_INLINE mr_f32 mr_##name(mr_f32 x) {                                   \
    mr_f32 result = mr_mr_near_##name(x);                                         \
    const mr_lane_mask is_far = mr_gt(mr_absolute(x), mr_f32_of(mr_most_turned)); \
    if (__builtin_expect(mr_any(is_far), 0)) {                                    \
      mr_spilled<float> each = mr_spill(result);                                  \
      MR_EACH_OF(lane, is_far) each.of[lane] = name(x[lane]);                     \
      result = mr_load(each.of);                                                  \
    }                                                                             \
    return result;                                                                \
  }
MR_LANES_OF_1(expf)
MR_LANES_OF_1(expm1f)
MR_LANES_OF_1(logf)
MR_LANES_OF_1(log2f)
MR_LANES_OF_1(log10f)
MR_LANES_OF_1(log1pf)
MR_LANES_OF_TURNS(sinf)
MR_LANES_OF_TURNS(cosf)
MR_LANES_OF_TURNS(tanf)
MR_LANES_OF_1(asinf)
MR_LANES_OF_1(acosf)
MR_LANES_OF_1(atanf)
MR_LANES_OF_2(atan2f)
MR_LANES_OF_1(sinhf)
MR_LANES_OF_1(coshf)
MR_LANES_OF_1(tanhf)
MR_LANES_OF_1(asinhf)
MR_LANES_OF_1(acoshf)
MR_LANES_OF_1(atanhf)
MR_LANES_OF_1(cbrtf)
MR_LANES_OF_2(powf)
MR_LANES_OF_2(hypotf)
#undef MR_LANES_OF_1
#undef MR_LANES_OF_2
#undef MR_LANES_OF_TURNS

/// JavaScript's Math.round: halves go up, and what becomes zero keeps its sign.
template <class V>
static MR_INLINE V mr_to_nearest(V x) {
  const V down = mr_rounded_vector<1>(x);
  return mr_with_sign_of(x, mr_choose(mr_ge(x - down, V{} + 0.5f), down + 1.0f, down));
}

/// Truncates modulo 2^32, as JavaScript's `x | 0`. For what 32 bits do not hold, an x64 processor gives the lowest
/// number, and an Arm one the lowest or the highest.
static MR_INLINE mr_i32 mr_wrapped(mr_f32 x) {
  // Negated twice, or g++ turns a conversion back to floats into a rounding that keeps the sign of zero.
  const mr_i32 whole = -__builtin_convertvector(-x, mr_i32);
  if (__builtin_expect(!mr_any(mr_eq(whole | mr_i32_of(1), mr_i32_of(-2147483647))), 1)) return whole;
  MR_LANE_BY_LANE(int, __builtin_fabsf(x[lane]) < 0x1p63f ? static_cast<int>(static_cast<long long>(x[lane])) : 0)
}

// A quotient of 32-bit integers is exact in double, and every processor has vectors of double.
#define MR_HALF (MR_WIDTH / 2)
typedef int mr_half_i32 __attribute__((vector_size(4 * MR_HALF)));
typedef unsigned mr_half_u32 __attribute__((vector_size(4 * MR_HALF)));
typedef double mr_half_f64 __attribute__((vector_size(8 * MR_HALF)));
#define MR_LANE_DIVISION(name, half)                                                                     \
  static MR_INLINE mr_##name mr_quotient(mr_##name a, mr_##name b) {                                     \
    half x[2], y[2];                                                                                     \
    __builtin_memcpy(x, &a, sizeof(a));                                                                  \
    __builtin_memcpy(y, &b, sizeof(b));                                                                  \
    for (int part = 0; part < 2; ++part) {                                                               \
      const mr_half_f64 quotient =                                                                       \
          __builtin_convertvector(x[part], mr_half_f64) / __builtin_convertvector(y[part], mr_half_f64); \
      x[part] = __builtin_convertvector(quotient, half);                                                 \
    }                                                                                                    \
    mr_##name result;                                                                                    \
    __builtin_memcpy(&result, x, sizeof(result));                                                        \
    return result;                                                                                       \
  }
MR_LANE_DIVISION(i32, mr_half_i32)
MR_LANE_DIVISION(u32, mr_half_u32)
#undef MR_LANE_DIVISION

/// Division by zero gives 0; INT_MIN / -1 wraps.
static MR_INLINE mr_i32 mr_divided(mr_i32 a, mr_i32 b) {
  const mr_lane_mask is_plain = mr_gt((mr_u32)b + 1u, mr_u32_of(1u));
  const mr_i32 quotient = mr_quotient(a, mr_choose(is_plain, b, mr_i32_of(1)));
  return mr_choose(is_plain, quotient, mr_choose(mr_eq(b, mr_i32{}), mr_i32{}, (mr_i32)(-(mr_u32)a)));
}
static MR_INLINE mr_u32 mr_divided(mr_u32 a, mr_u32 b) {
  const mr_lane_mask is_plain = mr_ne(b, mr_u32{});
  return mr_choose(is_plain, mr_quotient(a, mr_choose(is_plain, b, mr_u32_of(1u))), mr_u32{});
}
static MR_INLINE mr_i32 mr_remainder_of(mr_i32 a, mr_i32 b) {
  const mr_lane_mask is_plain = mr_gt((mr_u32)b + 1u, mr_u32_of(1u));
  const mr_i32 divisor = mr_choose(is_plain, b, mr_i32_of(1));
  return (mr_i32)((mr_u32)a - (mr_u32)mr_quotient(a, divisor) * (mr_u32)divisor);
}
static MR_INLINE mr_u32 mr_remainder_of(mr_u32 a, mr_u32 b) {
  const mr_lane_mask is_plain = mr_ne(b, mr_u32{});
  const mr_u32 divisor = mr_choose(is_plain, b, mr_u32_of(1u));
  return a - mr_quotient(a, divisor) * divisor;
}
static MR_INLINE mr_i32 mr_floor_divided(mr_i32 a, mr_i32 b) {
  const mr_i32 quotient = mr_divided(a, b);
  const mr_i32 rest = mr_remainder_of(a, b);
  const mr_lane_mask is_below = mr_ne(rest, mr_i32{}) & mr_lt(a ^ b, mr_i32{});
  return mr_choose(is_below, quotient - 1, quotient);
}
