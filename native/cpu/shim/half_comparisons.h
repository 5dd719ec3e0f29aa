// Comparisons, minima and maxima of a 16-bit floating-point type and of its pairs. Included for each type
// (half_type.h).

/// `unordered` is what a comparison with NaN gives; the forms with a u give true.
#define MR_COMPARE(name, op, unordered)                                                                               \
  MR_INLINE bool __h##name(const MR_HALF a, const MR_HALF b) {                                                        \
    const float x = a.mr_wide(), y = b.mr_wide();                                                                     \
    return (unordered && (x != x || y != y)) || ((x == x && y == y) && x op y);                                       \
  }                                                                                                                   \
  MR_INLINE MR_PAIR __h##name##2(const MR_PAIR a, const MR_PAIR b) {                                                  \
    constexpr unsigned short one = MR_FORMAT::one;                                                                    \
    return MR_PAIR_RAW{__h##name(a.x, b.x) ? one : (unsigned short)0, __h##name(a.y, b.y) ? one : (unsigned short)0}; \
  }                                                                                                                   \
  MR_INLINE unsigned __h##name##2_mask(const MR_PAIR a, const MR_PAIR b) {                                            \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                           \
  }                                                                                                                   \
  MR_INLINE bool __hb##name##2(const MR_PAIR a, const MR_PAIR b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
#define MR_COMPARE_BOTH(name, op) \
  MR_COMPARE(name, op, false)     \
  MR_COMPARE(name##u, op, true)
MR_COMPARE_BOTH(eq, ==)
MR_COMPARE_BOTH(ne, !=)
MR_COMPARE_BOTH(lt, <)
MR_COMPARE_BOTH(le, <=)
MR_COMPARE_BOTH(gt, >)
MR_COMPARE_BOTH(ge, >=)
#undef MR_COMPARE_BOTH
#undef MR_COMPARE

#define MR_COMPARE_OPERATOR(op, name) \
  MR_INLINE bool operator op(const MR_HALF& a, const MR_HALF& b) { return __h##name(a, b); }
#define MR_COMPARE_PAIRS(op, name) \
  MR_INLINE bool operator op(const MR_PAIR& a, const MR_PAIR& b) { return __hb##name##2(a, b); }
#define MR_SIX(row) row(==, eq) row(!=, neu) row(<, lt) row(<=, le) row(>, gt) row(>=, ge)
#if !defined(MR_NO_HALF_OPERATORS)
MR_SIX(MR_COMPARE_OPERATOR)
#endif
#if !defined(MR_NO_PAIR_OPERATORS)
MR_SIX(MR_COMPARE_PAIRS)
#endif
#undef MR_SIX
#undef MR_COMPARE_PAIRS
#undef MR_COMPARE_OPERATOR

#define MR_EXTREME(name, is_max, keeps_nan)                                             \
  MR_INLINE MR_HALF __h##name(const MR_HALF a, const MR_HALF b) {                       \
    return MR_HALF::mr_of(mr_half_extreme<MR_FORMAT, is_max, keeps_nan>(a.__x, b.__x)); \
  }
#define MR_EXTREME_PAIR(name, of) \
  MR_INLINE MR_PAIR __h##name(const MR_PAIR a, const MR_PAIR b) { return {__h##of(a.x, b.x), __h##of(a.y, b.y)}; }
MR_EXTREME(max, true, false)
MR_EXTREME(min, false, false)
MR_EXTREME(max_nan, true, true)
MR_EXTREME(min_nan, false, true)
MR_EXTREME_PAIR(max2, max)
MR_EXTREME_PAIR(min2, min)
MR_EXTREME_PAIR(max2_nan, max_nan)
MR_EXTREME_PAIR(min2_nan, min_nan)
#undef MR_EXTREME
#undef MR_EXTREME_PAIR

MR_INLINE bool __hisnan(const MR_HALF a) {
  return (a.__x & 0x7fffu) > MR_FORMAT::infinity;
}
/// 1, -1 for minus infinity, or 0.
MR_INLINE int __hisinf(const MR_HALF a) {
  return (a.__x & 0x7fffu) != MR_FORMAT::infinity ? 0 : a.__x & 0x8000u ? -1 : 1;
}
MR_INLINE MR_PAIR __hisnan2(const MR_PAIR a) {
  constexpr unsigned short one = MR_FORMAT::one;
  return MR_PAIR_RAW{__hisnan(a.x) ? one : (unsigned short)0, __hisnan(a.y) ? one : (unsigned short)0};
}
