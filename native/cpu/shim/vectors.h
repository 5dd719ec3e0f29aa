// Vector types and dim3, with the alignment they have on a GPU, and their make_ functions.
#pragma once

#include "types.h"

/// One row per element type: the name, the element, and the alignment of the pair and of the quadruple.
#define MR_VECTORS(name, T, pair, quad)                                 \
  struct name##1 { T x; };                                              \
  struct __attribute__((aligned(pair))) name##2 { T x, y; };            \
  struct name##3 { T x, y, z; };                                        \
  struct __attribute__((aligned(quad))) name##4 { T x, y, z, w; };      \
  MR_INLINE name##1 make_##name##1(T x) { return {x}; }                 \
  MR_INLINE name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  MR_INLINE name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  MR_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

MR_VECTORS(char, signed char, 2, 4)
MR_VECTORS(uchar, unsigned char, 2, 4)
MR_VECTORS(short, short, 4, 8)
MR_VECTORS(ushort, unsigned short, 4, 8)
MR_VECTORS(int, int, 8, 16)
MR_VECTORS(uint, unsigned, 8, 16)
MR_VECTORS(long, long, 16, 16)
MR_VECTORS(ulong, unsigned long, 16, 16)
MR_VECTORS(longlong, long long, 16, 16)
MR_VECTORS(ulonglong, unsigned long long, 16, 16)
MR_VECTORS(float, float, 8, 16)
MR_VECTORS(double, double, 16, 16)
#undef MR_VECTORS

/// Quadruples of 8-byte elements by their alignment, as CUDA 13 names them.
#define MR_ALIGNED_VECTORS(name, T)                                                     \
  struct __attribute__((aligned(16))) name##4_16a { T x, y, z, w; };                    \
  struct __attribute__((aligned(32))) name##4_32a { T x, y, z, w; };                    \
  MR_INLINE name##4_16a make_##name##4_16a(T x, T y, T z, T w) { return {x, y, z, w}; } \
  MR_INLINE name##4_32a make_##name##4_32a(T x, T y, T z, T w) { return {x, y, z, w}; }

MR_ALIGNED_VECTORS(long, long)
MR_ALIGNED_VECTORS(ulong, unsigned long)
MR_ALIGNED_VECTORS(longlong, long long)
MR_ALIGNED_VECTORS(ulonglong, unsigned long long)
MR_ALIGNED_VECTORS(double, double)
#undef MR_ALIGNED_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};
