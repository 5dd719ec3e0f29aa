// CUDA's complex numbers: a float2 or a double2, real part first.
#pragma once

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define MR_COMPLEX(C, T, make, suffix)                                                                    \
  __host__ __device__ static __inline__ T cuCreal##suffix(C a) { return a.x; }                            \
  __host__ __device__ static __inline__ T cuCimag##suffix(C a) { return a.y; }                            \
  __host__ __device__ static __inline__ C make(T x, T y) {                                                \
    C made;                                                                                               \
    made.x = x;                                                                                           \
    made.y = y;                                                                                           \
    return made;                                                                                          \
  }                                                                                                       \
  __host__ __device__ static __inline__ C cuConj##suffix(C a) { return make(a.x, -a.y); }                 \
  __host__ __device__ static __inline__ C cuCadd##suffix(C a, C b) { return make(a.x + b.x, a.y + b.y); } \
  __host__ __device__ static __inline__ C cuCsub##suffix(C a, C b) { return make(a.x - b.x, a.y - b.y); } \
  __host__ __device__ static __inline__ C cuCmul##suffix(C a, C b) {                                      \
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                            \
  }                                                                                                       \
  __host__ __device__ static __inline__ T cuCabs##suffix(C a) { return hypot(a.x, a.y); }                 \
  /* Scaled, so that the squares neither overflow nor vanish. */                                          \
  __host__ __device__ static __inline__ C cuCdiv##suffix(C a, C b) {                                      \
    const T scale = T(1) / (fabs(b.x) + fabs(b.y));                                                       \
    const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                       \
    const T over = T(1) / (bx * bx + by * by);                                                            \
    return make((ax * bx + ay * by) * over, (ay * bx - ax * by) * over);                                  \
  }                                                                                                       \
  __host__ __device__ static __inline__ C cuCfma##suffix(C a, C b, C c) {                                 \
    return make(a.x * b.x - a.y * b.y + c.x, a.x * b.y + a.y * b.x + c.y);                                \
  }
MR_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, f)
MR_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, )
#undef MR_COMPLEX

__host__ __device__ static __inline__ cuComplex make_cuComplex(float x, float y) {
  return make_cuFloatComplex(x, y);
}
__host__ __device__ static __inline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return make_cuDoubleComplex(a.x, a.y);
}
__host__ __device__ static __inline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex(static_cast<float>(a.x), static_cast<float>(a.y));
}
