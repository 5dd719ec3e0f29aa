// CUDA's C++ library: namespace cuda::std has the parts of the standard library that kernels have as std.
#pragma once

#include "mr_std.h"
#include "types.h"

namespace cuda {

namespace std {
using namespace ::std;
}

/// The larger of two values, also of two types.
template <class T = void>
struct maximum {
  MR_INLINE constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T, class U>
  MR_INLINE constexpr auto operator()(const T& a, const U& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct minimum {
  MR_INLINE constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T, class U>
  MR_INLINE constexpr auto operator()(const T& a, const U& b) const {
    return b < a ? b : a;
  }
};

}  // namespace cuda
