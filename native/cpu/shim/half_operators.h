// Operators of a 16-bit floating-point type or of its pairs, and the functions of the same names. Included for each of
// the four types, after definitions of
//   MR_VALUE, MR_ARITHMETIC, MR_PRODUCT   the type, its mr_half_arithmetic, and the type of `x * y`
//   MR_2                                  `2` for pairs, else empty
//   MR_NO_OPERATORS                       if the source has operators of its own

#define MR_NAME(before, after) MR_JOIN(before, MR_2, after)

MR_INLINE MR_PRODUCT MR_NAME(__hmul, )(const MR_VALUE x, const MR_VALUE y) {
#if defined(MR_FUSES)
  return {x, y};
#else
  return MR_ARITHMETIC::product(x, y);
#endif
}
MR_INLINE MR_VALUE MR_NAME(__hadd, )(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::sum(x, y);
}
MR_INLINE MR_VALUE MR_NAME(__hsub, )(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::difference(x, y);
}
MR_INLINE MR_VALUE MR_NAME(__hadd, _sat)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::saturated(MR_ARITHMETIC::sum(x, y));
}
MR_INLINE MR_VALUE MR_NAME(__hsub, _sat)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::saturated(MR_ARITHMETIC::difference(x, y));
}
MR_INLINE MR_VALUE MR_NAME(__hneg, )(const MR_VALUE x) {
  return MR_ARITHMETIC::negative(x);
}
// These are never fused.
MR_INLINE MR_VALUE MR_NAME(__hadd, _rn)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::sum(x, y);
}
MR_INLINE MR_VALUE MR_NAME(__hsub, _rn)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::difference(x, y);
}
MR_INLINE MR_VALUE MR_NAME(__hmul, _rn)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::product(x, y);
}
MR_INLINE MR_VALUE MR_NAME(__hmul, _sat)(const MR_VALUE x, const MR_VALUE y) {
  return MR_ARITHMETIC::saturated(MR_ARITHMETIC::product(x, y));
}
MR_INLINE MR_VALUE MR_NAME(__hfma, )(const MR_VALUE x, const MR_VALUE y, const MR_VALUE z) {
  return MR_ARITHMETIC::fma(x, y, z);
}
MR_INLINE MR_VALUE MR_NAME(__hfma, _sat)(const MR_VALUE x, const MR_VALUE y, const MR_VALUE z) {
  return MR_ARITHMETIC::saturated(MR_ARITHMETIC::fma(x, y, z));
}
MR_INLINE MR_VALUE MR_NAME(__hfma, _relu)(const MR_VALUE x, const MR_VALUE y, const MR_VALUE z) {
  return MR_ARITHMETIC::positive(MR_ARITHMETIC::fma(x, y, z));
}
MR_INLINE MR_VALUE MR_NAME(__habs, )(const MR_VALUE x) {
  return MR_ARITHMETIC::magnitude(x);
}

#if defined(MR_FUSES)
#define MR_FUSED(add, sub, finish)                                                                      \
  MR_INLINE MR_VALUE add(MR_PRODUCT&& x, const MR_VALUE& y) { return finish(x.mr_plus(y)); }            \
  MR_INLINE MR_VALUE add(const MR_VALUE& x, MR_PRODUCT&& y) { return finish(y.mr_plus(x)); }            \
  MR_INLINE MR_VALUE add(MR_PRODUCT&& x, MR_PRODUCT&& y) { return finish(x.mr_plus(y)); }               \
  MR_INLINE MR_VALUE sub(MR_PRODUCT&& x, const MR_VALUE& y) { return finish(x.mr_minus(y)); }           \
  MR_INLINE MR_VALUE sub(const MR_VALUE& x, MR_PRODUCT&& y) { return finish(y.mr_subtracted_from(x)); } \
  MR_INLINE MR_VALUE sub(MR_PRODUCT&& x, MR_PRODUCT&& y) { return finish(x.mr_minus(y)); }
MR_FUSED(MR_NAME(__hadd, ), MR_NAME(__hsub, ), )
MR_FUSED(MR_NAME(__hadd, _sat), MR_NAME(__hsub, _sat), MR_ARITHMETIC::saturated)
MR_INLINE MR_PRODUCT MR_NAME(__hneg, )(MR_PRODUCT&& x) {
  return x.mr_negative();
}
#endif

#if !defined(MR_NO_OPERATORS)
#if defined(MR_FUSES)
MR_FUSED(operator+, operator-, )
MR_INLINE MR_PRODUCT operator-(MR_PRODUCT&& x) {
  return x.mr_negative();
}
MR_INLINE MR_VALUE& operator+=(MR_VALUE& x, MR_PRODUCT&& y) {
  return x = y.mr_plus(x);
}
MR_INLINE MR_VALUE& operator-=(MR_VALUE& x, MR_PRODUCT&& y) {
  return x = y.mr_subtracted_from(x);
}
#endif
MR_INLINE MR_VALUE operator+(const MR_VALUE& x, const MR_VALUE& y) {
  return MR_ARITHMETIC::sum(x, y);
}
MR_INLINE MR_VALUE operator-(const MR_VALUE& x, const MR_VALUE& y) {
  return MR_ARITHMETIC::difference(x, y);
}
MR_INLINE MR_PRODUCT operator*(const MR_VALUE& x, const MR_VALUE& y) {
  return MR_NAME(__hmul, )(x, y);
}
MR_INLINE MR_VALUE operator/(const MR_VALUE& x, const MR_VALUE& y) {
  return MR_ARITHMETIC::quotient(x, y);
}
MR_INLINE MR_VALUE operator+(const MR_VALUE& x) {
  return x;
}
MR_INLINE MR_VALUE operator-(const MR_VALUE& x) {
  return MR_ARITHMETIC::negative(x);
}
MR_INLINE MR_VALUE& operator+=(MR_VALUE& x, const MR_VALUE& y) {
  return x = x + y;
}
MR_INLINE MR_VALUE& operator-=(MR_VALUE& x, const MR_VALUE& y) {
  return x = x - y;
}
MR_INLINE MR_VALUE& operator*=(MR_VALUE& x, const MR_VALUE& y) {
  return x = MR_ARITHMETIC::product(x, y);
}
MR_INLINE MR_VALUE& operator/=(MR_VALUE& x, const MR_VALUE& y) {
  return x = x / y;
}
MR_INLINE MR_VALUE& operator++(MR_VALUE& x) {
  return x = x + MR_ARITHMETIC::one();
}
MR_INLINE MR_VALUE& operator--(MR_VALUE& x) {
  return x = x - MR_ARITHMETIC::one();
}
MR_INLINE MR_VALUE operator++(MR_VALUE& x, int) {
  const MR_VALUE before = x;
  ++x;
  return before;
}
MR_INLINE MR_VALUE operator--(MR_VALUE& x, int) {
  const MR_VALUE before = x;
  --x;
  return before;
}
#endif

#undef MR_FUSED
#undef MR_NAME
#undef MR_VALUE
#undef MR_ARITHMETIC
#undef MR_PRODUCT
#undef MR_2
#undef MR_NO_OPERATORS
