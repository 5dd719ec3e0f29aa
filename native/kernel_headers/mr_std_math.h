// The functions of <cmath>, <cstdlib> and <bit> in namespace std, for kernel sources.
#pragma once

namespace std {

#define MR_STD_MATH(name) \
  using ::name;           \
  using ::name##f;
MR_STD_MATH(acos)
MR_STD_MATH(acosh)
MR_STD_MATH(asin)
MR_STD_MATH(asinh)
MR_STD_MATH(atan)
MR_STD_MATH(atan2)
MR_STD_MATH(atanh)
MR_STD_MATH(cbrt)
MR_STD_MATH(ceil)
MR_STD_MATH(copysign)
MR_STD_MATH(cos)
MR_STD_MATH(cosh)
MR_STD_MATH(erf)
MR_STD_MATH(erfc)
MR_STD_MATH(exp)
MR_STD_MATH(exp2)
MR_STD_MATH(expm1)
MR_STD_MATH(fabs)
MR_STD_MATH(fdim)
MR_STD_MATH(floor)
MR_STD_MATH(fma)
MR_STD_MATH(fmax)
MR_STD_MATH(fmin)
MR_STD_MATH(fmod)
MR_STD_MATH(frexp)
MR_STD_MATH(hypot)
MR_STD_MATH(ldexp)
MR_STD_MATH(lgamma)
MR_STD_MATH(log)
MR_STD_MATH(log10)
MR_STD_MATH(log1p)
MR_STD_MATH(log2)
MR_STD_MATH(logb)
MR_STD_MATH(lrint)
MR_STD_MATH(lround)
MR_STD_MATH(modf)
MR_STD_MATH(nearbyint)
MR_STD_MATH(nextafter)
MR_STD_MATH(pow)
MR_STD_MATH(remainder)
MR_STD_MATH(rint)
MR_STD_MATH(round)
MR_STD_MATH(scalbn)
MR_STD_MATH(sin)
MR_STD_MATH(sinh)
MR_STD_MATH(sqrt)
MR_STD_MATH(tan)
MR_STD_MATH(tanh)
MR_STD_MATH(tgamma)
MR_STD_MATH(trunc)
#undef MR_STD_MATH
using ::abs;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::labs;
using ::llabs;
using ::llrint;
using ::llround;
using ::signbit;

using ::clock;
using ::clock_t;
using ::memcpy;
using ::memset;
using ::printf;

template <class To, class From>
MR_BOTH constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

}  // namespace std
