// Loads and stores of array elements as narrow SIMD lanes (simd_narrow.h). A store keeps the low bits.
#pragma once

#if MR_NARROW_LANES == 1
static MR_INLINE mr_i32 mr_widened(mr_vector<unsigned char> v) {
  return v;
}
static MR_INLINE mr_i32 mr_widened(mr_vector<signed char> v) {
  return (mr_i32)v;
}
static MR_INLINE mr_vector<unsigned char> mr_narrowed(mr_i32 v, const unsigned char*) {
  return v;
}
static MR_INLINE mr_vector<signed char> mr_narrowed(mr_i32 v, const signed char*) {
  return (mr_vector<signed char>)v;
}
#else
#if !defined(__clang__) && defined(MR_HAS_MASKS)
#define MR_WIDENED(v, instruction) __builtin_ia32_pmov##instruction##512_mask((mr_vector<char>)v, mr_i32{}, -1)
#elif !defined(__clang__) && defined(__AVX2__) && MR_WIDTH == 16
#define MR_WIDENED(v, instruction) __builtin_ia32_pmov##instruction##256((mr_vector<char>)v)
#else
#define MR_WIDENED(v, instruction) __builtin_convertvector(v, mr_i32)
#endif
static MR_INLINE mr_i32 mr_widened(mr_vector<unsigned char> v) {
  return MR_WIDENED(v, zxbw);
}
static MR_INLINE mr_i32 mr_widened(mr_vector<signed char> v) {
  return MR_WIDENED(v, sxbw);
}
static MR_INLINE mr_i32 mr_widened(mr_i32 v) {
  return v;
}
static MR_INLINE mr_i32 mr_widened(mr_u32 v) {
  return (mr_i32)v;
}
#undef MR_WIDENED
#if !defined(__clang__) && defined(MR_HAS_MASKS)
#define MR_NARROWED(v, T) (mr_vector<T>)__builtin_ia32_pmovwb512_mask(v, mr_vector<char>{}, -1)
#else
#define MR_NARROWED(v, T) __builtin_convertvector(v, mr_vector<T>)
#endif
static MR_INLINE mr_vector<unsigned char> mr_narrowed(mr_i32 v, const unsigned char*) {
  return MR_NARROWED(v, unsigned char);
}
static MR_INLINE mr_vector<signed char> mr_narrowed(mr_i32 v, const signed char*) {
  return MR_NARROWED(v, signed char);
}
#undef MR_NARROWED
static MR_INLINE mr_i32 mr_narrowed(mr_i32 v, const short*) {
  return v;
}
static MR_INLINE mr_u32 mr_narrowed(mr_i32 v, const unsigned short*) {
  return (mr_u32)v;
}
#endif
