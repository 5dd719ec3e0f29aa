// CUDA's functions for two halfwords or four bytes in a word: __vadd4, __vmaxu2 and so on.
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
