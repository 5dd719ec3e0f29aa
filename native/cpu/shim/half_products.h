// Arithmetic of 16-bit floats and of pairs of them, and products that an addition may fuse with.
//
// CUDA's compiler fuses a product with an addition (fmad), so `a * b + c` is rounded once. g++ cannot do that to a
// class, hence `a * b` is an object that remembers its factors; an addition takes them if the product is a temporary
// object, thus used nowhere else. Of two products, the left one is fused. fmad=false defines MR_UNFUSED. A source that
// depends on types, or does not compile with such objects, is compiled without them (MR_PLAIN_INDICES).
#pragma once

#include "atomics.h"
#include "half_formats.h"

#if !defined(MR_UNFUSED) && !defined(MR_PLAIN_INDICES)
#define MR_FUSES 1
#endif
#define MR_JOIN(before, word, after) MR_JOIN_EXPANDED(before, word, after)
#define MR_JOIN_EXPANDED(before, word, after) before##word##after

template <class mr_To>
MR_INLINE mr_To mr_half_integer(float value) {
  // A GPU converts NaN to 0, and as a 64-bit integer to this.
  if (sizeof(mr_To) == 8 && value != value) return static_cast<mr_To>(0x8000000000000000ull);
  return mr_saturate<mr_To>(value);
}

/// A number of one of the types, or a pair: what is computed for each number.
template <class mr_Half>
struct mr_half_lanes {
  using format = typename mr_Half::mr_format;
  static MR_INLINE mr_Half one() { return mr_Half::mr_of(format::one); }
  template <class mr_Compute>
  static MR_INLINE mr_Half each(mr_Compute compute, mr_Half x) {
    return mr_Half::mr_of(compute(x.__x));
  }
  template <class mr_Compute>
  static MR_INLINE mr_Half each(mr_Compute compute, mr_Half x, mr_Half y) {
    return mr_Half::mr_of(compute(x.__x, y.__x));
  }
  template <class mr_Compute>
  static MR_INLINE mr_Half each(mr_Compute compute, mr_Half x, mr_Half y, mr_Half z) {
    return mr_Half::mr_of(compute(x.__x, y.__x, z.__x));
  }
};
template <class mr_Pair>
struct mr_half_pair_lanes {
  using lane = mr_half_lanes<typename mr_Pair::mr_half>;
  using format = typename lane::format;
  static MR_INLINE mr_Pair one() { return {lane::one(), lane::one()}; }
  template <class mr_Compute>
  static MR_INLINE mr_Pair each(mr_Compute compute, mr_Pair x) {
    return {lane::each(compute, x.x), lane::each(compute, x.y)};
  }
  template <class mr_Compute>
  static MR_INLINE mr_Pair each(mr_Compute compute, mr_Pair x, mr_Pair y) {
    return {lane::each(compute, x.x, y.x), lane::each(compute, x.y, y.y)};
  }
  template <class mr_Compute>
  static MR_INLINE mr_Pair each(mr_Compute compute, mr_Pair x, mr_Pair y, mr_Pair z) {
    return {lane::each(compute, x.x, y.x, z.x), lane::each(compute, x.y, y.y, z.y)};
  }
};

template <class mr_Lanes, class mr_Value>
struct mr_half_arithmetic {
  using format = typename mr_Lanes::format;
  static MR_INLINE mr_Value one() { return mr_Lanes::one(); }
  static MR_INLINE mr_Value sum(mr_Value x, mr_Value y) { return mr_Lanes::each(format::sum, x, y); }
  static MR_INLINE mr_Value product(mr_Value x, mr_Value y) { return mr_Lanes::each(format::product, x, y); }
  static MR_INLINE mr_Value quotient(mr_Value x, mr_Value y) { return mr_Lanes::each(format::quotient, x, y); }
  static MR_INLINE mr_Value fma(mr_Value x, mr_Value y, mr_Value z) { return mr_Lanes::each(format::fma, x, y, z); }
  /// As on a GPU, the negative of NaN is 0x7fff.
  static MR_INLINE mr_Value negative(mr_Value x) {
    return mr_Lanes::each(
        [](unsigned short bits) -> unsigned short {
          return (bits & 0x7fffu) > format::infinity ? mr_half_nan : bits ^ 0x8000u;
        },
        x);
  }
  static MR_INLINE mr_Value magnitude(mr_Value x) {
    return mr_Lanes::each(
        [](unsigned short bits) -> unsigned short {
          return (bits & 0x7fffu) > format::infinity ? mr_half_nan : bits & 0x7fffu;
        },
        x);
  }
  static MR_INLINE mr_Value difference(mr_Value x, mr_Value y) { return sum(x, negative(y)); }
  static MR_INLINE mr_Value saturated(mr_Value x) { return mr_Lanes::each(mr_half_saturated<format>, x); }
  static MR_INLINE mr_Value positive(mr_Value x) {
    // -0 and all negative numbers become 0; NaN stays.
    return mr_Lanes::each(
        [](unsigned short bits) -> unsigned short {
          if ((bits & 0x7fffu) > format::infinity) return mr_half_nan;
          return bits & 0x8000u ? 0 : bits;
        },
        x);
  }
};

/// x * y, and its value.
template <class mr_Value, class mr_Arithmetic>
struct mr_half_product : mr_Value {
  mr_Value mr_x, mr_y;

  mr_half_product() = default;
  MR_INLINE mr_half_product(mr_Value x, mr_Value y) : mr_Value(mr_Arithmetic::product(x, y)), mr_x(x), mr_y(y) {}
  MR_INLINE mr_Value mr_plus(mr_Value z) const { return mr_Arithmetic::fma(mr_x, mr_y, z); }
  MR_INLINE mr_Value mr_minus(mr_Value z) const { return mr_Arithmetic::fma(mr_x, mr_y, mr_Arithmetic::negative(z)); }
  MR_INLINE mr_Value mr_subtracted_from(mr_Value z) const {
    return mr_Arithmetic::fma(mr_Arithmetic::negative(mr_x), mr_y, z);
  }
  MR_INLINE mr_half_product mr_negative() const { return {mr_Arithmetic::negative(mr_x), mr_y}; }
};

#if defined(MR_FUSES)
template <class mr_Value, class mr_Arithmetic>
using mr_half_product_type = mr_half_product<mr_Value, mr_Arithmetic>;
#else
template <class mr_Value, class mr_Arithmetic>
using mr_half_product_type = mr_Value;
#endif
