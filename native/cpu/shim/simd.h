// Threads of a block in SIMD lanes, for the code that src/compiler/simd emits. As many neighbours along x as fit in a
// register run together: each value is a vector with one lane per thread, and a mask holds the active lanes. A region
// (barrier_regions.h) is a loop over such groups.
//
// Vectors are the vector extension of GCC and clang. With AVX-512 a mask is a bit mask, otherwise a vector of ints, all
// ones or zero. Source with 64-bit values selects as many lanes as doubles fit, by MR_WIDE_LANES. Source whose values
// fit in fewer than 32 bits gives their size in bytes, by MR_NARROW_LANES: i32 and u32 are then vectors of that size,
// with more lanes.
#pragma once

#include "barrier_regions.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    (!defined(MR_VECTOR_BYTES) || MR_VECTOR_BYTES == 64)
#define MR_HAS_MASKS 1
#endif
#if defined(MR_VECTOR_BYTES)
// The user has defined the size.
#elif defined(MR_HAS_MASKS)
#define MR_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define MR_VECTOR_BYTES 32
#else
#define MR_VECTOR_BYTES 16
#endif
#if defined(MR_WIDE_LANES)
#define MR_WIDTH (MR_VECTOR_BYTES / 8)
#elif defined(MR_NARROW_LANES)
#define MR_WIDTH (MR_VECTOR_BYTES / MR_NARROW_LANES)
#else
#define MR_WIDTH (MR_VECTOR_BYTES / 4)
#endif

template <class T>
struct mr_vector_of {
  typedef T type __attribute__((vector_size(sizeof(T) * MR_WIDTH)));
};
template <class T>
using mr_vector = typename mr_vector_of<T>::type;

/// A vector in memory, from which single lanes are read.
template <class T>
struct mr_spilled {
  __attribute__((aligned(64))) T of[MR_WIDTH];
};

#if defined(MR_NARROW_LANES)
#include "simd_narrow.h"
#else
typedef mr_vector<int> mr_i32;
typedef mr_vector<unsigned> mr_u32;
typedef mr_vector<float> mr_f32;
typedef mr_vector<long long> mr_i64;
typedef mr_vector<unsigned long long> mr_u64;
typedef mr_vector<double> mr_f64;
/// The mask type that vector selection takes.
typedef mr_i32 mr_choice;

#if MR_WIDTH == 16
#define MR_ALL_OF(x) \
  { x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x }
#define MR_COUNTED \
  { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#elif MR_WIDTH == 8
#define MR_ALL_OF(x) \
  { x, x, x, x, x, x, x, x }
#define MR_COUNTED \
  { 0, 1, 2, 3, 4, 5, 6, 7 }
#elif MR_WIDTH == 4
#define MR_ALL_OF(x) \
  { x, x, x, x }
#define MR_COUNTED \
  { 0, 1, 2, 3 }
#else
#define MR_ALL_OF(x) \
  { x, x }
#define MR_COUNTED \
  { 0, 1 }
#endif

/// One row per value type: its name, and the scalar type.
#define MR_LANE_TYPES(row) \
  row(i32, int) row(u32, unsigned) row(f32, float) row(i64, long long) row(u64, unsigned long long) row(f64, double)

#define MR_BASICS(name, T)                                                          \
  static MR_INLINE mr_##name mr_##name##_of(T x) { return mr_##name MR_ALL_OF(x); } \
  static MR_INLINE mr_##name mr_##name##_of(mr_##name x) { return x; }              \
  static MR_INLINE T mr_lane(mr_##name v, int lane) { return v[lane]; }             \
  static MR_INLINE mr_spilled<T> mr_spill(mr_##name v) {                            \
    mr_spilled<T> spilled;                                                          \
    __builtin_memcpy(spilled.of, &v, sizeof(v));                                    \
    return spilled;                                                                 \
  }
MR_LANE_TYPES(MR_BASICS)
#undef MR_BASICS

/// from, from + step, from + 2 step, ... with wraparound.
static MR_INLINE mr_i32 mr_ramp(int from, int step) {
  return (mr_i32)(mr_u32 MR_COUNTED * static_cast<unsigned>(step) + static_cast<unsigned>(from));
}
static MR_INLINE mr_i32 mr_ramp(int from) {
  return (mr_i32)(mr_u32 MR_COUNTED + static_cast<unsigned>(from));
}
#endif

// The lane of a uniform value is the value itself.
template <class T, class = mr_enable_if_t<mr_is_integral<T> || mr_is_same<T, float> || mr_is_same<T, double>, T>>
static MR_INLINE T mr_lane(T x, int) {
  return x;
}
template <class T>
static MR_INLINE T mr_lane(const mr_spilled<T>& spilled, int lane) {
  return spilled.of[lane];
}
template <class T, class = mr_enable_if_t<mr_is_integral<T> || mr_is_same<T, float> || mr_is_same<T, double>, T>>
static MR_INLINE T mr_spill(T x) {
  return x;
}

/// One lane's element of from, from + step, from + 2 step, ...
static MR_INLINE int mr_of_ramp(int from, int step, int lane) {
  return static_cast<int>(static_cast<unsigned>(from) + static_cast<unsigned>(step) * static_cast<unsigned>(lane));
}

#include "simd_masks.h"
#if defined(MR_NARROW_LANES)
#include "simd_narrow_math.h"
#else
#include "simd_math.h"
#endif
#include "simd_memory.h"

/// The groups of a block: in each row, the threads from `first` to `end`. A single loop, so that uniform values are
/// computed once per block even if rows are short.
#define MR_EACH_GROUP(first, end)                                                                           \
  for (int mr_x = first, mr_y = 0, mr_z = 0; mr_z < mr_box_of_block.depth;                                  \
       (mr_x += MR_WIDTH) < end || (mr_x = first, ++mr_y < mr_box_of_block.height) || (mr_y = 0, ++mr_z)) { \
    const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)};                              \
    const int mr_thread = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value + mr_x;
/// The same groups, column by column.
#define MR_EACH_GROUP_BY_COLUMN(first, end)                                        \
  for (int mr_z = 0; mr_z < mr_box_of_block.depth; ++mr_z)                         \
    for (int mr_x = first; mr_x < end; mr_x += MR_WIDTH)                           \
      for (int mr_y = 0; mr_y < mr_box_of_block.height; ++mr_y) {                  \
        const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)}; \
        const int mr_thread = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value + mr_x;
/// The full groups, if `is_fast`; MR_GROUPS runs the others.
#define MR_FULL_GROUPS_IN(each, is_fast, lanes, width)                                  \
  if (const int mr_end = width & -MR_WIDTH; __builtin_expect(is_fast && mr_end > 0, 1)) \
    each(0, mr_end) mr_lane_mask lanes = mr_lane_mask_of(true);
#define MR_FULL_GROUPS(is_fast, lanes, width) MR_FULL_GROUPS_IN(MR_EACH_GROUP, is_fast, lanes, width)
#define MR_FULL_GROUPS_BY_COLUMN(is_fast, lanes, width) \
  MR_FULL_GROUPS_IN(MR_EACH_GROUP_BY_COLUMN, is_fast, lanes, width)
#define MR_GROUPS(is_fast, lanes, width)                                                                           \
  if (const int mr_first_x = is_fast ? width & -MR_WIDTH : 0; mr_first_x < width) MR_EACH_GROUP(mr_first_x, width) \
  mr_lane_mask lanes = mr_mask_of_first(width - mr_x);                                                             \
  if (mr_are_some_gone) lanes = lanes & ~mr_load_mask(mr_gone + mr_thread, lanes);                                 \
  if (!mr_any(lanes)) continue;
#define MR_END_GROUPS }

/// The number of threads of a row below a bound.
static MR_INLINE int mr_below_bound(int width, long long bound) {
  return bound < width ? bound < 0 ? 0 : static_cast<int>(bound) : width;
}

/// Reports a fault for the first of the lanes.
#define MR_FAULT_OF(lanes)                                                                                            \
  [&](unsigned mr_array, unsigned mr_dimension, auto mr_at, int mr_limit) {                                           \
    const int mr_l = mr_first(lanes);                                                                                 \
    mr_report(mr_fault, mr_fault_word, mr_array, mr_dimension, (long long)mr_lane(mr_at, mr_l), mr_limit, blockIdx.x, \
              blockIdx.y, blockIdx.z, threadIdx.x + (unsigned)mr_l, threadIdx.y, threadIdx.z);                        \
  }

/// A mask of the bytes that are not zero.
static MR_INLINE mr_lane_mask mr_load_mask(const unsigned char* from, mr_lane_mask m) {
  return mr_ne(mr_load(from, m), mr_i32{});
}
static MR_INLINE mr_lane_mask mr_load_mask(const bool* from, mr_lane_mask m) {
  return mr_load_mask(reinterpret_cast<const unsigned char*>(from), m);
}
static MR_INLINE void mr_store_mask(unsigned char* to, mr_lane_mask value, mr_lane_mask m) {
  mr_store(to, mr_ones(value), m);
}
static MR_INLINE void mr_store_mask(bool* to, mr_lane_mask value, mr_lane_mask m) {
  mr_store_mask(reinterpret_cast<unsigned char*>(to), value, m);
}

// Local arrays that cross regions: the lanes of a group are adjacent.
#undef MR_CROSSING_ARRAY
#undef MR_OWN_ARRAY
#define MR_CROSSING_ARRAY(type, name, elements)                   \
  const mr_thread_memory<type[(elements)*MR_WIDTH]> mr_of_##name( \
      static_cast<size_t>((blockDim.x.value + MR_WIDTH - 1) / MR_WIDTH) * blockDim.y.value * blockDim.z.value);
#define MR_OWN_ARRAY(type, name, elements)                                                                     \
  type* const name =                                                                                           \
      mr_of_##name.address[(mr_z * blockDim.y.value + mr_y) * ((blockDim.x.value + MR_WIDTH - 1) / MR_WIDTH) + \
                           mr_x / MR_WIDTH];
