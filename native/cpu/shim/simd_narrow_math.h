// Arithmetic of narrow SIMD lanes (simd_narrow.h), and comparisons of strided values that do not fit in a lane: these
// exist only as lane 0's scalar and a stride.
#pragma once

#include "simd_masks.h"

// Both compilers select the right instructions for these.
static MR_INLINE mr_i32 mr_min(mr_i32 a, mr_i32 b) {
  return a < b ? a : b;
}
static MR_INLINE mr_i32 mr_max(mr_i32 a, mr_i32 b) {
  return a > b ? a : b;
}
#if MR_NARROW_LANES == 2
static MR_INLINE mr_u32 mr_min(mr_u32 a, mr_u32 b) {
  return a < b ? a : b;
}
static MR_INLINE mr_u32 mr_max(mr_u32 a, mr_u32 b) {
  return a > b ? a : b;
}
static MR_INLINE mr_i32 mr_absolute(mr_i32 x) {
  return x < 0 ? (mr_i32)(-(mr_u32)x) : x;
}
#else
static MR_INLINE mr_i32 mr_absolute(mr_i32 x) {
  return x;
}
/// The sum, saturated at 255.
static MR_INLINE mr_i32 mr_sum_to_most(mr_i32 a, mr_i32 b) {
#if !defined(__clang__) && defined(MR_HAS_MASKS)
  return (mr_i32)__builtin_ia32_paddusb512_mask((mr_vector<char>)a, (mr_vector<char>)b, mr_vector<char>{}, -1);
#elif !defined(__clang__) && defined(__AVX2__) && MR_WIDTH == 32
  return (mr_i32)__builtin_ia32_paddusb256((mr_vector<char>)a, (mr_vector<char>)b);
#elif !defined(__clang__) && defined(__SSE2__) && MR_WIDTH == 16
  return (mr_i32)__builtin_ia32_paddusb128((mr_vector<char>)a, (mr_vector<char>)b);
#else
  const mr_i32 sum = a + b;
  return sum < a ? ~mr_i32{} : sum;
#endif
}
#endif

/// Clamps a value that is compared only with values between the bounds.
template <class T>
static MR_INLINE T mr_bounded(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

/// from, from + step, from + 2 step, ... with wraparound.
struct mr_steps {
  int from, step;
};
static MR_INLINE int mr_lane(mr_steps steps, int lane) {
  return mr_of_ramp(steps.from, steps.step, lane);
}
/// The lanes whose value is below a bound or, with `IsOutside`, outside an array of that size. Lane by lane and not
/// inlined, because this case is rare.
template <bool IsOutside>
static __attribute__((noinline)) mr_lane_mask mr_ask_each(mr_steps steps, int bound) {
  mr_spilled<mr_narrow_i32> spilled;
  for (int lane = 0; lane < MR_WIDTH; ++lane) {
    const int number = mr_lane(steps, lane);
    spilled.of[lane] = IsOutside ? static_cast<unsigned>(number) >= static_cast<unsigned>(bound) : number < bound;
  }
  mr_i32 ones;
  __builtin_memcpy(&ones, spilled.of, sizeof(ones));
  return mr_ne(ones, mr_i32{});
}

// Compares lane values with stride 1 to a uniform bound.
static MR_INLINE mr_lane_mask mr_next_lt(int from, int bound) {
  if (__builtin_expect(from > 2147483647 - MR_WIDTH, 0)) return mr_ask_each<false>(mr_steps{from, 1}, bound);
  const long long count = static_cast<long long>(bound) - from;
  return mr_mask_of_first(count < 0 ? 0 : count > MR_WIDTH ? MR_WIDTH : static_cast<int>(count));
}
static MR_INLINE mr_lane_mask mr_next_ge(int from, int bound) {
  return ~mr_next_lt(from, bound);
}
static MR_INLINE mr_lane_mask mr_next_le(int from, int bound) {
  return bound == 2147483647 ? mr_lane_mask_of(true) : mr_next_lt(from, bound + 1);
}
static MR_INLINE mr_lane_mask mr_next_gt(int from, int bound) {
  return ~mr_next_le(from, bound);
}
static MR_INLINE mr_lane_mask mr_next_eq(int from, int bound) {
  return mr_next_le(from, bound) & mr_next_ge(from, bound);
}
static MR_INLINE mr_lane_mask mr_next_ne(int from, int bound) {
  return ~mr_next_eq(from, bound);
}

/// The lanes whose index is outside an array of this size.
static MR_INLINE mr_lane_mask mr_outside(mr_steps steps, int extent) {
  if (steps.step == 1) return ~(mr_next_ge(steps.from, 0) & mr_next_lt(steps.from, extent));
  return mr_ask_each<true>(steps, extent);
}
