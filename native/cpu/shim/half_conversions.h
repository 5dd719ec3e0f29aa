// Conversions of a 16-bit floating-point type, and between it and its pairs. Included for each type (half_type.h),
// after
//   MR_WORD   what names of functions call the type: half, or bfloat16

#define MR_NAME(before, after) MR_JOIN(before, MR_WORD, after)

#define MR_NARROWING(name, given, wide, direction) \
  MR_INLINE MR_HALF name(const given value) { return MR_HALF::mr_of(MR_FORMAT::narrowed<mr_toward::direction>(wide)); }
MR_NARROWING(MR_NAME(__float2, _rz), float, value, zero)
MR_NARROWING(MR_NAME(__float2, _rd), float, value, down)
MR_NARROWING(MR_NAME(__float2, _ru), float, value, up)
MR_INLINE MR_HALF MR_NAME(__double2, )(const double value) {
  return MR_HALF::mr_of(MR_FORMAT::of_double(value));
}
MR_INLINE MR_HALF MR_NAME(__float2, _rn)(const float value) {
  return MR_HALF::mr_of(MR_FORMAT::nearest(value));
}
MR_INLINE MR_HALF MR_NAME(__float2, )(const float value) {
  return MR_HALF::mr_of(MR_FORMAT::nearest(value));
}
MR_INLINE float MR_NAME(__, 2float)(const MR_HALF value) {
  return value.mr_wide();
}

#define MR_TO_INTEGER(suffix, to, round) \
  MR_INLINE to MR_NAME(__, suffix)(const MR_HALF value) { return mr_half_integer<to>(round(value.mr_wide())); }
MR_TO_INTEGER(2char_rz, signed char, )
MR_TO_INTEGER(2uchar_rz, unsigned char, )
#define MR_INTEGER(word, integer, wider)                                                          \
  MR_NARROWING(MR_NAME(__##word##2, _rn), integer, mr_sticky(static_cast<wider>(value)), nearest) \
  MR_NARROWING(MR_NAME(__##word##2, _rz), integer, mr_sticky(static_cast<wider>(value)), zero)    \
  MR_NARROWING(MR_NAME(__##word##2, _rd), integer, mr_sticky(static_cast<wider>(value)), down)    \
  MR_NARROWING(MR_NAME(__##word##2, _ru), integer, mr_sticky(static_cast<wider>(value)), up)      \
  MR_TO_INTEGER(2##word##_rn, integer, rintf)                                                     \
  MR_TO_INTEGER(2##word##_rz, integer, )                                                          \
  MR_TO_INTEGER(2##word##_rd, integer, floorf)                                                    \
  MR_TO_INTEGER(2##word##_ru, integer, ceilf)
MR_INTEGER(short, short, long long)
MR_INTEGER(ushort, unsigned short, unsigned long long)
MR_INTEGER(int, int, long long)
MR_INTEGER(uint, unsigned, unsigned long long)
MR_INTEGER(ll, long long, long long)
MR_INTEGER(ull, unsigned long long, unsigned long long)
#undef MR_INTEGER
#undef MR_TO_INTEGER
#undef MR_NARROWING

MR_INLINE MR_PAIR MR_NAME(__float2, 2_rn)(const float value) {
  return {MR_NAME(__float2, )(value), MR_NAME(__float2, )(value)};
}
MR_INLINE MR_PAIR MR_NAME(__floats2, 2_rn)(const float low, const float high) {
  return {MR_NAME(__float2, )(low), MR_NAME(__float2, )(high)};
}
MR_INLINE MR_PAIR MR_NAME(__float22, 2_rn)(const float2 values) {
  return {MR_NAME(__float2, )(values.x), MR_NAME(__float2, )(values.y)};
}
MR_INLINE float2 MR_NAME(__, 22float2)(const MR_PAIR pair) {
  return {pair.x.mr_wide(), pair.y.mr_wide()};
}
MR_INLINE float __low2float(const MR_PAIR pair) {
  return pair.x.mr_wide();
}
MR_INLINE float __high2float(const MR_PAIR pair) {
  return pair.y.mr_wide();
}

MR_INLINE MR_PAIR MR_NAME(make_, 2)(const MR_HALF low, const MR_HALF high) {
  return {low, high};
}
MR_INLINE MR_PAIR MR_NAME(__halves2, 2)(const MR_HALF low, const MR_HALF high) {
  return {low, high};
}
MR_INLINE MR_PAIR MR_JOIN(MR_NAME(__, 2), MR_WORD, 2)(const MR_HALF both) {
  return {both, both};
}
MR_INLINE MR_PAIR MR_NAME(__lows2, 2)(const MR_PAIR a, const MR_PAIR b) {
  return {a.x, b.x};
}
MR_INLINE MR_PAIR MR_NAME(__highs2, 2)(const MR_PAIR a, const MR_PAIR b) {
  return {a.y, b.y};
}
MR_INLINE MR_HALF MR_NAME(__low2, )(const MR_PAIR pair) {
  return pair.x;
}
MR_INLINE MR_HALF MR_NAME(__high2, )(const MR_PAIR pair) {
  return pair.y;
}
MR_INLINE MR_PAIR MR_NAME(__low2, 2)(const MR_PAIR pair) {
  return {pair.x, pair.x};
}
MR_INLINE MR_PAIR MR_NAME(__high2, 2)(const MR_PAIR pair) {
  return {pair.y, pair.y};
}
MR_INLINE MR_PAIR __lowhigh2highlow(const MR_PAIR pair) {
  return {pair.y, pair.x};
}

MR_INLINE short MR_NAME(__, _as_short)(const MR_HALF value) {
  return static_cast<short>(value.__x);
}
MR_INLINE unsigned short MR_NAME(__, _as_ushort)(const MR_HALF value) {
  return value.__x;
}
MR_INLINE MR_HALF MR_NAME(__short_as_, )(const short bits) {
  return MR_HALF::mr_of(static_cast<unsigned short>(bits));
}
MR_INLINE MR_HALF MR_NAME(__ushort_as_, )(const unsigned short bits) {
  return MR_HALF::mr_of(bits);
}

#undef MR_NAME
