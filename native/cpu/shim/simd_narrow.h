// Vectors for source whose 32-bit values all fit in fewer bits (simd.h): i32 and u32 have one or two bytes.
// src/compiler/simd/element-width.ts has proven that each value fits, or that only the bits that are kept are used.
#pragma once

#if MR_NARROW_LANES == 1
// Both types are unsigned, because no value here is negative.
typedef unsigned char mr_narrow_i32;
typedef unsigned char mr_narrow_u32;
typedef mr_vector<signed char> mr_choice;
#else
typedef short mr_narrow_i32;
typedef unsigned short mr_narrow_u32;
typedef mr_vector<short> mr_choice;
#endif
typedef mr_vector<mr_narrow_i32> mr_i32;
typedef mr_vector<mr_narrow_u32> mr_u32;

static MR_INLINE mr_i32 mr_i32_of(int x) {
  return mr_i32{} + static_cast<mr_narrow_i32>(x);
}
static MR_INLINE mr_i32 mr_i32_of(mr_i32 x) {
  return x;
}
static MR_INLINE int mr_lane(mr_i32 v, int lane) {
  return v[lane];
}
static MR_INLINE mr_u32 mr_u32_of(unsigned x) {
  return mr_u32{} + static_cast<mr_narrow_u32>(x);
}
#if MR_NARROW_LANES == 2
static MR_INLINE mr_u32 mr_u32_of(mr_u32 x) {
  return x;
}
static MR_INLINE unsigned mr_lane(mr_u32 v, int lane) {
  return v[lane];
}
#endif

#define MR_EIGHT_FROM(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define MR_SIXTEEN_FROM(n) MR_EIGHT_FROM(n), MR_EIGHT_FROM(n + 8)
#if MR_WIDTH == 64
#define MR_COUNTED \
  { MR_SIXTEEN_FROM(0), MR_SIXTEEN_FROM(16), MR_SIXTEEN_FROM(32), MR_SIXTEEN_FROM(48) }
#elif MR_WIDTH == 32
#define MR_COUNTED \
  { MR_SIXTEEN_FROM(0), MR_SIXTEEN_FROM(16) }
#elif MR_WIDTH == 16
#define MR_COUNTED \
  { MR_SIXTEEN_FROM(0) }
#else
#define MR_COUNTED \
  { MR_EIGHT_FROM(0) }
#endif

/// The low bits of from, from + step, from + 2 step, ...
static MR_INLINE mr_i32 mr_ramp(int from, int step) {
  return (mr_i32)(mr_u32 MR_COUNTED * static_cast<mr_narrow_u32>(step) + static_cast<mr_narrow_u32>(from));
}
static MR_INLINE mr_i32 mr_ramp(int from) {
  return (mr_i32)(mr_u32 MR_COUNTED + static_cast<mr_narrow_u32>(from));
}

#if !defined(MR_HAS_MASKS)
/// The sign bit of each lane.
static MR_INLINE unsigned long long mr_signs(mr_choice v) {
#if MR_NARROW_LANES == 1 && defined(__AVX2__) && MR_WIDTH == 32
  return static_cast<unsigned>(__builtin_ia32_pmovmskb256((mr_vector<char>)v));
#elif MR_NARROW_LANES == 1 && defined(__SSE2__) && MR_WIDTH == 16
  return static_cast<unsigned>(__builtin_ia32_pmovmskb128((mr_vector<char>)v));
#elif MR_NARROW_LANES == 2 && defined(__SSE2__) && MR_WIDTH == 16
  return static_cast<unsigned>(__builtin_ia32_pmovmskb128(__builtin_convertvector(v, mr_vector<char>)));
#elif MR_NARROW_LANES == 2 && defined(__SSE2__) && MR_WIDTH == 8
  return static_cast<unsigned>(__builtin_ia32_pmovmskb128(__builtin_ia32_packsswb128(v, mr_choice{})));
#else
  unsigned long long bits = 0;
  for (int lane = 0; lane < MR_WIDTH; ++lane) bits |= (v[lane] & 1ull) << lane;
  return bits;
#endif
}
#endif
