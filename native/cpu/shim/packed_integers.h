// CUDA's functions for two halfwords or four bytes in a word (__vadd4, __vmaxu2), and those for dynamic programming
// (__viaddmax_s32).
#pragma once

#include "device_functions.h"

/// Applies `of` to each pair of parts of two words, and packs the low bits of the results.
template <class Part, class Of>
MR_INLINE unsigned mr_packed(unsigned a, unsigned b, Of of) {
  constexpr unsigned bits = 8 * sizeof(Part);
  constexpr unsigned mask = (1u << bits) - 1u;
  unsigned result = 0;
  for (unsigned at = 0; at < 32u; at += bits) {
    const int x = static_cast<Part>(a >> at);
    const int y = static_cast<Part>(b >> at);
    result |= (static_cast<unsigned>(of(x, y)) & mask) << at;
  }
  return result;
}
template <class Part>
MR_INLINE int mr_saturated(int v) {
  constexpr int half = 1 << (8 * sizeof(Part) - 1);
  constexpr bool is_signed = static_cast<Part>(-1) < static_cast<Part>(1);
  constexpr int least = is_signed ? -half : 0;
  constexpr int most = is_signed ? half - 1 : 2 * half - 1;
  return v < least ? least : v > most ? most : v;
}
template <class Part>
MR_INLINE unsigned mr_sum_of_differences(unsigned a, unsigned b) {
  constexpr unsigned bits = 8 * sizeof(Part);
  unsigned sum = 0;
  for (unsigned at = 0; at < 32u; at += bits) {
    const int d = static_cast<Part>(a >> at) - static_cast<Part>(b >> at);
    sum += static_cast<unsigned>(d < 0 ? -d : d);
  }
  return sum;
}

/// A function of two words. In the expression, x and y are parts of the type `Part`.
#define MR_PACKED(name, count, Part, expression)                                  \
  MR_INLINE unsigned __v##name##count(unsigned a, unsigned b) {                   \
    return mr_packed<Part>(a, b, [](int x, int y) -> int { return expression; }); \
  }
#define MR_PACKED_UNARY(name, count, Part, expression)                          \
  MR_INLINE unsigned __v##name##count(unsigned a) {                             \
    return mr_packed<Part>(a, a, [](int x, int) -> int { return expression; }); \
  }
/// A comparison, whose result is all ones in `vcmp` and 1 in `vset`.
#define MR_COMPARED(name, count, Part, expression)         \
  MR_PACKED(cmp##name, count, Part, (expression) ? -1 : 0) \
  MR_PACKED(set##name, count, Part, (expression) ? 1 : 0)

#define MR_PACKED_FUNCTIONS(count, Signed, Unsigned)                                                        \
  MR_PACKED_UNARY(abs, count, Signed, x < 0 ? -x : x)                                                       \
  MR_PACKED_UNARY(absss, count, Signed, mr_saturated<Signed>(x < 0 ? -x : x))                               \
  MR_PACKED_UNARY(neg, count, Signed, -x)                                                                   \
  MR_PACKED_UNARY(negss, count, Signed, mr_saturated<Signed>(-x))                                           \
  MR_PACKED(add, count, Unsigned, x + y)                                                                    \
  MR_PACKED(addss, count, Signed, mr_saturated<Signed>(x + y))                                              \
  MR_PACKED(addus, count, Unsigned, mr_saturated<Unsigned>(x + y))                                          \
  MR_PACKED(sub, count, Unsigned, x - y)                                                                    \
  MR_PACKED(subss, count, Signed, mr_saturated<Signed>(x - y))                                              \
  MR_PACKED(subus, count, Unsigned, mr_saturated<Unsigned>(x - y))                                          \
  /* A mean of signed parts is rounded up unless it is negative. */                                         \
  MR_PACKED(avgs, count, Signed, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)                                       \
  MR_PACKED(avgu, count, Unsigned, (x + y + 1) >> 1)                                                        \
  MR_PACKED(haddu, count, Unsigned, (x + y) >> 1)                                                           \
  MR_PACKED(absdiffs, count, Signed, x < y ? y - x : x - y)                                                 \
  MR_PACKED(absdiffu, count, Unsigned, x < y ? y - x : x - y)                                               \
  MR_PACKED(maxs, count, Signed, x < y ? y : x)                                                             \
  MR_PACKED(maxu, count, Unsigned, x < y ? y : x)                                                           \
  MR_PACKED(mins, count, Signed, y < x ? y : x)                                                             \
  MR_PACKED(minu, count, Unsigned, y < x ? y : x)                                                           \
  MR_COMPARED(eq, count, Unsigned, x == y)                                                                  \
  MR_COMPARED(ne, count, Unsigned, x != y)                                                                  \
  MR_COMPARED(ges, count, Signed, x >= y)                                                                   \
  MR_COMPARED(geu, count, Unsigned, x >= y)                                                                 \
  MR_COMPARED(gts, count, Signed, x > y)                                                                    \
  MR_COMPARED(gtu, count, Unsigned, x > y)                                                                  \
  MR_COMPARED(les, count, Signed, x <= y)                                                                   \
  MR_COMPARED(leu, count, Unsigned, x <= y)                                                                 \
  MR_COMPARED(lts, count, Signed, x < y)                                                                    \
  MR_COMPARED(ltu, count, Unsigned, x < y)                                                                  \
  MR_INLINE unsigned __vsads##count(unsigned a, unsigned b) { return mr_sum_of_differences<Signed>(a, b); } \
  MR_INLINE unsigned __vsadu##count(unsigned a, unsigned b) { return mr_sum_of_differences<Unsigned>(a, b); }

MR_PACKED_FUNCTIONS(2, short, unsigned short)
MR_PACKED_FUNCTIONS(4, signed char, unsigned char)
#undef MR_PACKED_FUNCTIONS
#undef MR_COMPARED
#undef MR_PACKED_UNARY
#undef MR_PACKED

// Functions for dynamic programming (DPX): sums, maxima and minima of words, or of the halfwords of words.
template <class T>
MR_INLINE T mr_larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
MR_INLINE T mr_smaller(T a, T b) {
  return b < a ? b : a;
}
/// Applies `of` to the upper and the lower halfwords of three words. Sums wrap, as `Half` does.
template <class Half, class Of>
MR_INLINE unsigned mr_of_halves(unsigned a, unsigned b, unsigned c, Of of) {
  const auto half = [&](unsigned at) {
    return static_cast<unsigned short>(
        of(static_cast<Half>(a >> at), static_cast<Half>(b >> at), static_cast<Half>(c >> at)));
  };
  return static_cast<unsigned>(half(16)) << 16 | half(0);
}
MR_INLINE int mr_wrapping_sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
MR_INLINE unsigned mr_wrapping_sum(unsigned a, unsigned b) {
  return a + b;
}
MR_INLINE short mr_wrapping_sum(short a, short b) {
  return static_cast<short>(a + b);
}
MR_INLINE unsigned short mr_wrapping_sum(unsigned short a, unsigned short b) {
  return static_cast<unsigned short>(a + b);
}

/// A function of three numbers in its forms: of a word, and of halfwords. `T` in the expression is the type of a
/// number.
#define MR_DPX(name, word, half, Word, Half, expression)                               \
  MR_INLINE Word name##_##word(Word a, Word b, Word c) {                               \
    using T = Word;                                                                    \
    return expression;                                                                 \
  }                                                                                    \
  MR_INLINE unsigned name##_##half(unsigned a_, unsigned b_, unsigned c_) {            \
    using T = Half;                                                                    \
    return mr_of_halves<T>(a_, b_, c_, [](T a, T b, T c) -> T { return expression; }); \
  }
#define MR_DPX_SIGNED(name, expression)            \
  MR_DPX(name, s32, s16x2, int, short, expression) \
  MR_DPX(name, s32_relu, s16x2_relu, int, short, mr_larger<T>(expression, 0))
#define MR_DPX_ALL(name, expression) \
  MR_DPX_SIGNED(name, expression)    \
  MR_DPX(name, u32, u16x2, unsigned, unsigned short, expression)

MR_DPX_ALL(__vimax3, mr_larger<T>(mr_larger<T>(a, b), c))
MR_DPX_ALL(__vimin3, mr_smaller<T>(mr_smaller<T>(a, b), c))
MR_DPX_ALL(__viaddmax, mr_larger<T>(mr_wrapping_sum(a, b), c))
MR_DPX_ALL(__viaddmin, mr_smaller<T>(mr_wrapping_sum(a, b), c))
#undef MR_DPX_ALL
#undef MR_DPX_SIGNED
#undef MR_DPX

#define MR_DPX_PAIR(name, of, is_first)                                                                    \
  MR_INLINE int __vi##name##_s32_relu(int a, int b) { return mr_larger(of(a, b), 0); }                     \
  MR_INLINE unsigned __vi##name##_s16x2_relu(unsigned a, unsigned b) {                                     \
    return mr_of_halves<short>(a, b, 0, [](short x, short y, short z) { return mr_larger(of(x, y), z); }); \
  }                                                                                                        \
  MR_INLINE int __vib##name##_s32(int a, int b, bool* is_a) {                                              \
    *is_a = a is_first b;                                                                                  \
    return of(a, b);                                                                                       \
  }                                                                                                        \
  MR_INLINE unsigned __vib##name##_u32(unsigned a, unsigned b, bool* is_a) {                               \
    *is_a = a is_first b;                                                                                  \
    return of(a, b);                                                                                       \
  }                                                                                                        \
  MR_DPX_HALVES(name, s16x2, short, of, is_first)                                                          \
  MR_DPX_HALVES(name, u16x2, unsigned short, of, is_first)
#define MR_DPX_HALVES(name, half, Half, of, is_first)                                                   \
  MR_INLINE unsigned __vib##name##_##half(unsigned a, unsigned b, bool* is_upper_a, bool* is_lower_a) { \
    *is_upper_a = static_cast<Half>(a >> 16) is_first static_cast<Half>(b >> 16);                       \
    *is_lower_a = static_cast<Half>(a) is_first static_cast<Half>(b);                                   \
    return mr_of_halves<Half>(a, b, 0, [](Half x, Half y, Half) { return of(x, y); });                  \
  }
MR_DPX_PAIR(max, mr_larger, >=)
MR_DPX_PAIR(min, mr_smaller, <=)
#undef MR_DPX_PAIR
#undef MR_DPX_HALVES
