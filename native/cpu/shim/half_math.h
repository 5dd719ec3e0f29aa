// Mathematical functions of a 16-bit floating-point type and of its pairs. Included for each type (half_type.h).
//
// CUDA's functions give the nearest number for all 65,536 arguments, and so do these: they compute in double, whose
// error is far smaller than the distance of any of these results to the middle of two neighbours. Only h*tanh_approx of
// a GPU is less exact.

#define MR_HALF_MATH(name, expression)                                          \
  MR_INLINE MR_HALF h##name(const MR_HALF a) {                                  \
    const double x = a.mr_wide();                                               \
    return MR_HALF::mr_of(MR_FORMAT::narrowed<mr_toward::nearest>(expression)); \
  }                                                                             \
  MR_INLINE MR_PAIR h2##name(const MR_PAIR a) { return {h##name(a.x), h##name(a.y)}; }
MR_HALF_MATH(sqrt, sqrt(x))
MR_HALF_MATH(rsqrt, 1.0 / sqrt(x))
MR_HALF_MATH(rcp, 1.0 / x)
MR_HALF_MATH(log, log(x))
MR_HALF_MATH(log2, log2(x))
MR_HALF_MATH(log10, log10(x))
MR_HALF_MATH(exp, exp(x))
MR_HALF_MATH(exp2, exp2(x))
MR_HALF_MATH(exp10, exp10(x))
MR_HALF_MATH(cos, cos(x))
MR_HALF_MATH(sin, sin(x))
MR_HALF_MATH(tanh, tanh(x))
MR_HALF_MATH(tanh_approx, tanh(x))
#undef MR_HALF_MATH

/// Exact, so that a float suffices.
#define MR_HALF_WHOLE(name, function)                                                                              \
  MR_INLINE MR_HALF h##name(const MR_HALF a) { return MR_HALF::mr_of(MR_FORMAT::nearest(function(a.mr_wide()))); } \
  MR_INLINE MR_PAIR h2##name(const MR_PAIR a) { return {h##name(a.x), h##name(a.y)}; }
MR_HALF_WHOLE(floor, floorf)
MR_HALF_WHOLE(ceil, ceilf)
MR_HALF_WHOLE(trunc, truncf)
MR_HALF_WHOLE(rint, rintf)
#undef MR_HALF_WHOLE

MR_INLINE MR_HALF __hdiv(const MR_HALF a, const MR_HALF b) {
  return MR_HALF::mr_of(MR_FORMAT::quotient(a.__x, b.__x));
}
MR_INLINE MR_PAIR __h2div(const MR_PAIR a, const MR_PAIR b) {
  return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)};
}
/// a * b + c of complex numbers, real part first.
MR_INLINE MR_PAIR __hcmadd(const MR_PAIR a, const MR_PAIR b, const MR_PAIR c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

MR_INLINE MR_HALF atomicAdd(MR_HALF* const address, const MR_HALF value) {
  return mr_atomic_update(address, [=](MR_HALF old) { return __hadd_rn(old, value); });
}
/// As on a GPU, each half is added atomically.
MR_INLINE MR_PAIR atomicAdd(MR_PAIR* const address, const MR_PAIR value) {
  return mr_atomic_update(address, [=](MR_PAIR old) { return __hadd2_rn(old, value); });
}
