// Masks of SIMD lanes: comparisons produce them, selections and branches use them (simd.h).
#pragma once

#include "simd.h"

/// One bit per lane, the lowest first.
#if MR_WIDTH == 64
typedef unsigned long long mr_lane_mask_bits;
#else
typedef unsigned mr_lane_mask_bits;
#endif
static MR_INLINE int mr_lowest(mr_lane_mask_bits set) {
  return sizeof(set) == 8 ? __builtin_ctzll(set) : __builtin_ctz(static_cast<unsigned>(set));
}
static MR_INLINE int mr_highest(mr_lane_mask_bits set) {
  return sizeof(set) == 8 ? 63 - __builtin_clzll(set) : 31 - __builtin_clz(static_cast<unsigned>(set));
}
static constexpr mr_lane_mask_bits mr_every_lane = ~mr_lane_mask_bits(0) >> (8 * sizeof(mr_lane_mask_bits) - MR_WIDTH);

#if defined(MR_HAS_MASKS)

#if MR_WIDTH == 64
typedef unsigned long long mr_bits_type;
#elif MR_WIDTH == 32
typedef unsigned mr_bits_type;
#elif MR_WIDTH == 16
typedef unsigned short mr_bits_type;
#else
typedef unsigned char mr_bits_type;
#endif
struct mr_lane_mask {
  mr_bits_type of;
};
static MR_INLINE mr_lane_mask_bits mr_bits_of_lane_mask(mr_lane_mask m) {
  return m.of;
}
static MR_INLINE mr_lane_mask mr_of_bits(mr_lane_mask_bits bits) {
  return {static_cast<mr_bits_type>(bits)};
}
static MR_INLINE mr_lane_mask operator&(mr_lane_mask a, mr_lane_mask b) {
  return mr_of_bits(a.of & b.of);
}
static MR_INLINE mr_lane_mask operator|(mr_lane_mask a, mr_lane_mask b) {
  return mr_of_bits(a.of | b.of);
}
static MR_INLINE mr_lane_mask operator^(mr_lane_mask a, mr_lane_mask b) {
  return mr_of_bits(a.of ^ b.of);
}
static MR_INLINE mr_lane_mask operator~(mr_lane_mask a) {
  return mr_of_bits(~a.of);
}
static MR_INLINE mr_lane_mask mr_lane_mask_of(bool x) {
  return mr_of_bits(x ? mr_every_lane : 0);
}
/// A mask of the first `count` lanes.
static MR_INLINE mr_lane_mask mr_mask_of_first(int count) {
  return mr_of_bits(count >= MR_WIDTH ? mr_every_lane : (mr_lane_mask_bits(1) << count) - 1);
}

// Comparison codes of the instructions, for floats and for integers.
#define MR_COMPARISON(name, T, V, builtin, number, ...)                                         \
  static MR_INLINE mr_lane_mask mr_##name(T a, T b) {                                           \
    return mr_of_bits(builtin((V)a, (V)b, number, mr_bits_type(mr_every_lane), ##__VA_ARGS__)); \
  }
#define MR_COMPARISONS(T, V, builtin, is_float, ...)                 \
  MR_COMPARISON(eq, T, V, builtin, 0, ##__VA_ARGS__)                 \
  MR_COMPARISON(lt, T, V, builtin, 1, ##__VA_ARGS__)                 \
  MR_COMPARISON(le, T, V, builtin, 2, ##__VA_ARGS__)                 \
  MR_COMPARISON(ne, T, V, builtin, 4, ##__VA_ARGS__)                 \
  MR_COMPARISON(ge, T, V, builtin, is_float ? 13 : 5, ##__VA_ARGS__) \
  MR_COMPARISON(gt, T, V, builtin, is_float ? 14 : 6, ##__VA_ARGS__)
#if defined(__clang__)
#define MR_SELECT(T, V, suffix, letter) \
  static MR_INLINE T mr_choose(mr_lane_mask m, T a, T b) { return (T)__builtin_ia32_select##suffix(m.of, (V)a, (V)b); }
#else
#define MR_SELECT(T, V, suffix, letter)                               \
  static MR_INLINE T mr_choose(mr_lane_mask m, T a, T b) {            \
    return (T)__builtin_ia32_blendm##suffix##_mask((V)b, (V)a, m.of); \
  }
#endif
#if MR_WIDTH == 64
typedef mr_vector<char> mr_chars;
MR_COMPARISONS(mr_i32, mr_chars, __builtin_ia32_ucmpb512_mask, false)
MR_SELECT(mr_i32, mr_chars, b_512, )
#elif MR_WIDTH == 32
MR_COMPARISONS(mr_i32, mr_i32, __builtin_ia32_cmpw512_mask, false)
MR_COMPARISONS(mr_u32, mr_i32, __builtin_ia32_ucmpw512_mask, false)
MR_SELECT(mr_i32, mr_i32, w_512, )
MR_SELECT(mr_u32, mr_i32, w_512, )
#elif MR_WIDTH == 16
MR_COMPARISONS(mr_i32, mr_i32, __builtin_ia32_cmpd512_mask, false)
MR_COMPARISONS(mr_u32, mr_i32, __builtin_ia32_ucmpd512_mask, false)
MR_COMPARISONS(mr_f32, mr_f32, __builtin_ia32_cmpps512_mask, true, 4)
MR_SELECT(mr_i32, mr_i32, d_512, )
MR_SELECT(mr_u32, mr_i32, d_512, )
MR_SELECT(mr_f32, mr_f32, ps_512, )
#else
MR_COMPARISONS(mr_i32, mr_i32, __builtin_ia32_cmpd256_mask, false)
MR_COMPARISONS(mr_u32, mr_i32, __builtin_ia32_ucmpd256_mask, false)
MR_COMPARISONS(mr_f32, mr_f32, __builtin_ia32_cmpps256_mask, true)
MR_COMPARISONS(mr_i64, mr_i64, __builtin_ia32_cmpq512_mask, false)
MR_COMPARISONS(mr_u64, mr_i64, __builtin_ia32_ucmpq512_mask, false)
MR_COMPARISONS(mr_f64, mr_f64, __builtin_ia32_cmppd512_mask, true, 4)
MR_SELECT(mr_i32, mr_i32, d_256, )
MR_SELECT(mr_u32, mr_i32, d_256, )
MR_SELECT(mr_f32, mr_f32, ps_256, )
MR_SELECT(mr_i64, mr_i64, q_512, )
MR_SELECT(mr_u64, mr_i64, q_512, )
MR_SELECT(mr_f64, mr_f64, pd_512, )
#endif
#undef MR_COMPARISON
#undef MR_COMPARISONS
#undef MR_SELECT

#else

struct mr_lane_mask {
  mr_choice of;
};
static MR_INLINE mr_lane_mask operator&(mr_lane_mask a, mr_lane_mask b) {
  return {a.of & b.of};
}
static MR_INLINE mr_lane_mask operator|(mr_lane_mask a, mr_lane_mask b) {
  return {a.of | b.of};
}
static MR_INLINE mr_lane_mask operator^(mr_lane_mask a, mr_lane_mask b) {
  return {a.of ^ b.of};
}
static MR_INLINE mr_lane_mask operator~(mr_lane_mask a) {
  return {~a.of};
}
static MR_INLINE mr_lane_mask mr_lane_mask_of(bool x) {
  return {x ? ~mr_choice{} : mr_choice{}};
}
static MR_INLINE mr_lane_mask mr_mask_of_first(int count) {
  return {(mr_choice)(mr_ramp(0) < mr_i32_of(count < MR_WIDTH ? count : MR_WIDTH))};
}
static MR_INLINE mr_lane_mask_bits mr_bits_of_lane_mask(mr_lane_mask m) {
#if defined(MR_NARROW_LANES)
  return mr_signs(m.of);
#elif defined(__AVX2__) && MR_WIDTH == 8
  return static_cast<unsigned>(__builtin_ia32_movmskps256((mr_f32)m.of));
#elif defined(__SSE2__) && MR_WIDTH == 4
  return static_cast<unsigned>(__builtin_ia32_movmskps((mr_f32)m.of));
#else
  unsigned bits = 0;
  for (int lane = 0; lane < MR_WIDTH; ++lane) bits |= (m.of[lane] & 1u) << lane;
  return bits;
#endif
}

#if defined(MR_NARROW_LANES)
#define MR_COMPARISON_OF(T, name, op) \
  static MR_INLINE mr_lane_mask mr_##name(T a, T b) { return {(mr_choice)(a op b)}; }
#if MR_NARROW_LANES == 1
#define MR_COMPARISON(name, op) MR_COMPARISON_OF(mr_i32, name, op)
#else
#define MR_COMPARISON(name, op) MR_COMPARISON_OF(mr_i32, name, op) MR_COMPARISON_OF(mr_u32, name, op)
#endif
#else
#define MR_COMPARISON(name, op)                                                              \
  static MR_INLINE mr_lane_mask mr_##name(mr_i32 a, mr_i32 b) { return {(mr_i32)(a op b)}; } \
  static MR_INLINE mr_lane_mask mr_##name(mr_u32 a, mr_u32 b) { return {(mr_i32)(a op b)}; } \
  static MR_INLINE mr_lane_mask mr_##name(mr_f32 a, mr_f32 b) { return {(mr_i32)(a op b)}; } \
  static MR_INLINE mr_lane_mask mr_##name(mr_i64 a, mr_i64 b) {                              \
    return {__builtin_convertvector((mr_i64)(a op b), mr_i32)};                              \
  }                                                                                          \
  static MR_INLINE mr_lane_mask mr_##name(mr_u64 a, mr_u64 b) {                              \
    return {__builtin_convertvector((mr_i64)(a op b), mr_i32)};                              \
  }                                                                                          \
  static MR_INLINE mr_lane_mask mr_##name(mr_f64 a, mr_f64 b) {                              \
    return {__builtin_convertvector((mr_i64)(a op b), mr_i32)};                              \
  }
#endif
MR_COMPARISON(eq, ==)
MR_COMPARISON(ne, !=)
MR_COMPARISON(lt, <)
MR_COMPARISON(le, <=)
MR_COMPARISON(gt, >)
MR_COMPARISON(ge, >=)
#undef MR_COMPARISON
#define MR_SELECT(T, bits, mask)                           \
  static MR_INLINE T mr_choose(mr_lane_mask m, T a, T b) { \
    const bits chosen = mask;                              \
    return (T)(((bits)a & chosen) | ((bits)b & ~chosen));  \
  }
MR_SELECT(mr_i32, mr_choice, m.of)
#if MR_NARROW_LANES != 1
MR_SELECT(mr_u32, mr_choice, m.of)
#endif
#if !defined(MR_NARROW_LANES)
MR_SELECT(mr_f32, mr_i32, m.of)
MR_SELECT(mr_i64, mr_i64, __builtin_convertvector(m.of, mr_i64))
MR_SELECT(mr_u64, mr_i64, __builtin_convertvector(m.of, mr_i64))
MR_SELECT(mr_f64, mr_i64, __builtin_convertvector(m.of, mr_i64))
#endif
#undef MR_SELECT

#endif

static MR_INLINE mr_lane_mask mr_lane_mask_of(mr_lane_mask m) {
  return m;
}
static MR_INLINE mr_lane_mask mr_choose(mr_lane_mask m, mr_lane_mask a, mr_lane_mask b) {
  return (m & a) | (~m & b);
}
static MR_INLINE bool mr_any(mr_lane_mask m) {
  return mr_bits_of_lane_mask(m) != 0;
}
static MR_INLINE bool mr_all(mr_lane_mask m) {
  return mr_bits_of_lane_mask(m) == mr_every_lane;
}
/// The first active lane; there must be one.
static MR_INLINE int mr_first(mr_lane_mask m) {
  return mr_lowest(mr_bits_of_lane_mask(m));
}
static MR_INLINE int mr_last(mr_lane_mask m) {
  return mr_highest(mr_bits_of_lane_mask(m));
}
static MR_INLINE bool mr_lane(mr_lane_mask m, int lane) {
  return (mr_bits_of_lane_mask(m) >> lane & 1u) != 0;
}
static MR_INLINE mr_lane_mask mr_spill(mr_lane_mask m) {
  return m;
}
static MR_INLINE mr_i32 mr_ones(mr_lane_mask m) {
  return mr_choose(m, mr_i32_of(1), mr_i32_of(0));
}

/// Runs the next statement for each active lane.
#define MR_EACH_OF(lane, mask)                                                             \
  for (mr_lane_mask_bits mr_rest_##lane = mr_bits_of_lane_mask(mask); mr_rest_##lane != 0; \
       mr_rest_##lane &= mr_rest_##lane - 1)                                               \
    if (const int lane = mr_lowest(mr_rest_##lane); true)
#define MR_EACH(lane) _Pragma("GCC unroll 16") for (int lane = 0; lane < MR_WIDTH; ++lane)
