// A 16-bit floating-point type and its pair: __half and __half2, or __nv_bfloat16 and __nv_bfloat162.
//
// cuda_fp16.h and cuda_bf16.h of this folder include it once each, after they have defined
//   MR_HALF, MR_PAIR            the types; MR_OTHER_HALF the other format's
//   MR_HALF_RAW, MR_PAIR_RAW    their bits as structs, which CUDA names too
//   MR_FORMAT                   the format, of half_formats.h
//   MR_NO_CONVERSIONS           if the source asks for explicit conversions only

struct MR_OTHER_HALF;

struct __attribute__((aligned(2))) MR_HALF_RAW {
  unsigned short x;
};
struct __attribute__((aligned(4))) MR_PAIR_RAW {
  unsigned short x, y;
};

struct __attribute__((aligned(2))) MR_HALF {
  unsigned short __x;
  using mr_format = MR_FORMAT;

  MR_HALF() = default;
  MR_INLINE constexpr MR_HALF(const MR_HALF_RAW& raw) : __x(raw.x) {}
  MR_INLINE explicit MR_HALF(const MR_OTHER_HALF other);
  MR_INLINE MR_HALF& operator=(const MR_HALF_RAW& raw) { return __x = raw.x, *this; }
  MR_INLINE volatile MR_HALF& operator=(const MR_HALF_RAW& raw) volatile { return __x = raw.x, *this; }
  MR_INLINE volatile MR_HALF& operator=(const volatile MR_HALF_RAW& raw) volatile { return __x = raw.x, *this; }
  MR_INLINE operator MR_HALF_RAW() const { return {__x}; }
  MR_INLINE operator MR_HALF_RAW() const volatile { return {__x}; }

  static MR_INLINE constexpr MR_HALF mr_of(unsigned short bits) { return MR_HALF(MR_HALF_RAW{bits}); }
  MR_INLINE float mr_wide() const { return MR_FORMAT::widened(__x); }

#if !defined(MR_NO_CONVERSIONS)
  MR_INLINE MR_HALF(float value) : __x(MR_FORMAT::nearest(value)) {}
  MR_INLINE MR_HALF(double value) : __x(MR_FORMAT::of_double(value)) {}
#define MR_HALF_INTEGER(integer, wide) \
  MR_INLINE MR_HALF(integer value)     \
      : __x(MR_FORMAT::narrowed<mr_toward::nearest>(mr_sticky(static_cast<wide>(value)))) {}
  MR_HALF_INTEGER(short, long long)
  MR_HALF_INTEGER(unsigned short, unsigned long long)
  MR_HALF_INTEGER(int, long long)
  MR_HALF_INTEGER(unsigned, unsigned long long)
  MR_HALF_INTEGER(long, long long)
  MR_HALF_INTEGER(unsigned long, unsigned long long)
  MR_HALF_INTEGER(long long, long long)
  MR_HALF_INTEGER(unsigned long long, unsigned long long)
#undef MR_HALF_INTEGER
  MR_INLINE operator float() const {
    return mr_wide();
  }
  MR_INLINE operator signed char() const {
    return mr_half_integer<signed char>(mr_wide());
  }
  MR_INLINE operator unsigned char() const {
    return mr_half_integer<unsigned char>(mr_wide());
  }
  MR_INLINE operator char() const {
    return static_cast<char>(mr_half_integer<signed char>(mr_wide()));
  }
  MR_INLINE operator short() const {
    return mr_half_integer<short>(mr_wide());
  }
  MR_INLINE operator unsigned short() const {
    return mr_half_integer<unsigned short>(mr_wide());
  }
  MR_INLINE operator int() const {
    return mr_half_integer<int>(mr_wide());
  }
  MR_INLINE operator unsigned() const {
    return mr_half_integer<unsigned>(mr_wide());
  }
  MR_INLINE operator long() const {
    return mr_half_integer<long>(mr_wide());
  }
  MR_INLINE operator unsigned long() const {
    return mr_half_integer<unsigned long>(mr_wide());
  }
  MR_INLINE operator long long() const {
    return mr_half_integer<long long>(mr_wide());
  }
  MR_INLINE operator unsigned long long() const {
    return mr_half_integer<unsigned long long>(mr_wide());
  }
  MR_INLINE constexpr operator bool() const {
    return (__x & 0x7fffu) != 0;
  }
#endif
};

struct __attribute__((aligned(4))) MR_PAIR {
  MR_HALF x, y;
  using mr_half = MR_HALF;

  MR_PAIR() = default;
  MR_INLINE constexpr MR_PAIR(const MR_HALF& low, const MR_HALF& high) : x(low), y(high) {}
  MR_INLINE MR_PAIR(const MR_PAIR_RAW& raw) : x(MR_HALF::mr_of(raw.x)), y(MR_HALF::mr_of(raw.y)) {}
  /// A template, so that braces (`pair = {low, high}`) make no raw pair.
  template <class Raw, class = mr_enable_if_t<mr_is_same<Raw, MR_PAIR_RAW>, void>>
  MR_INLINE MR_PAIR& operator=(const Raw& raw) {
    return *this = MR_PAIR(raw);
  }
  MR_INLINE operator MR_PAIR_RAW() const { return {x.__x, y.__x}; }
};
