// Loads and stores of SIMD lanes (simd.h). Inactive lanes access no memory. Each function has two forms: with a mask,
// and for all lanes. Elements narrower than 32 bits load as i32.
#pragma once

#include "simd_masks.h"

#if defined(MR_NARROW_LANES)
#include "simd_narrow_memory.h"
#else
#define MR_PLAIN_ELEMENT(name, T)                                  \
  static MR_INLINE mr_##name mr_widened(mr_##name v) { return v; } \
  static MR_INLINE mr_##name mr_narrowed(mr_##name v, const T*) { return v; }
MR_LANE_TYPES(MR_PLAIN_ELEMENT)
#undef MR_PLAIN_ELEMENT
// g++ 12 widens a vector element by element, except by these instructions, which take a full register and use its first
// lanes.
template <class V>
struct mr_in_register {
  typedef V type __attribute__((vector_size(16)));
};
template <class V, class From>
static MR_INLINE typename mr_in_register<V>::type mr_begin_of_register(From v) {
  typename mr_in_register<V>::type in_register{};
  __builtin_memcpy(&in_register, &v, sizeof(v));
  return in_register;
}
#if !defined(__clang__) && defined(__AVX512F__) && MR_WIDTH == 16
#define MR_WIDENED(V, v, instruction) __builtin_ia32_pmov##instruction##512_mask((mr_vector<V>)v, mr_i32{}, -1)
#elif !defined(__clang__) && defined(__AVX2__) && MR_WIDTH == 8
#define MR_WIDENED(V, v, instruction) __builtin_ia32_pmov##instruction##256(mr_begin_of_register<V>(v))
#elif !defined(__clang__) && defined(__SSE4_1__) && MR_WIDTH == 4
#define MR_WIDENED(V, v, instruction) __builtin_ia32_pmov##instruction##128(mr_begin_of_register<V>(v))
#else
#define MR_WIDENED(V, v, instruction) __builtin_convertvector(v, mr_i32)
#endif
#define MR_NARROW_ELEMENT(T, V, instruction)                                                   \
  static MR_INLINE mr_i32 mr_widened(mr_vector<T> v) { return MR_WIDENED(V, v, instruction); } \
  static MR_INLINE mr_vector<T> mr_narrowed(mr_i32 v, const T*) { return __builtin_convertvector(v, mr_vector<T>); }
MR_NARROW_ELEMENT(signed char, char, sxbd)
MR_NARROW_ELEMENT(unsigned char, char, zxbd)
MR_NARROW_ELEMENT(short, short, sxwd)
MR_NARROW_ELEMENT(unsigned short, short, zxwd)
#undef MR_NARROW_ELEMENT
#endif

/// Contiguous elements from `from`.
template <class T>
static MR_INLINE auto mr_load(const T* from) {
  mr_vector<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return mr_widened(v);
}
template <class T, class V>
static MR_INLINE void mr_store(T* to, V value) {
  const mr_vector<T> v = mr_narrowed(value, to);
  __builtin_memcpy(to, &v, sizeof(v));
}

#if defined(MR_HAS_MASKS)
/// An address with conversions to every pointer type that the intrinsics take.
struct mr_address {
  const void* of;
  template <class T>
  MR_INLINE operator T*() const {
    return static_cast<T*>(const_cast<void*>(of));
  }
};
#if !defined(MR_NARROW_LANES)
#define MR_MASKED(T, V, B, load, store)                                                                      \
  static MR_INLINE V mr_load(const T* from, mr_lane_mask m) { return (V)load(mr_address{from}, B{}, m.of); } \
  static MR_INLINE void mr_store(T* to, V value, mr_lane_mask m) { store(mr_address{to}, (B)value, m.of); }
#if MR_WIDTH == 16
MR_MASKED(float, mr_f32, mr_f32, __builtin_ia32_loadups512_mask, __builtin_ia32_storeups512_mask)
MR_MASKED(int, mr_i32, mr_i32, __builtin_ia32_loaddqusi512_mask, __builtin_ia32_storedqusi512_mask)
MR_MASKED(unsigned, mr_u32, mr_i32, __builtin_ia32_loaddqusi512_mask, __builtin_ia32_storedqusi512_mask)
#else
MR_MASKED(float, mr_f32, mr_f32, __builtin_ia32_loadups256_mask, __builtin_ia32_storeups256_mask)
MR_MASKED(int, mr_i32, mr_i32, __builtin_ia32_loaddqusi256_mask, __builtin_ia32_storedqusi256_mask)
MR_MASKED(unsigned, mr_u32, mr_i32, __builtin_ia32_loaddqusi256_mask, __builtin_ia32_storedqusi256_mask)
MR_MASKED(double, mr_f64, mr_f64, __builtin_ia32_loadupd512_mask, __builtin_ia32_storeupd512_mask)
MR_MASKED(long long, mr_i64, mr_i64, __builtin_ia32_loaddqudi512_mask, __builtin_ia32_storedqudi512_mask)
MR_MASKED(unsigned long long, mr_u64, mr_i64, __builtin_ia32_loaddqudi512_mask, __builtin_ia32_storedqudi512_mask)
#endif
#undef MR_MASKED
#endif
#define MR_MASKED(T, B, load, store)                                               \
  static MR_INLINE mr_i32 mr_load(const T* from, mr_lane_mask m) {                 \
    return mr_widened((mr_vector<T>)load(mr_address{from}, mr_vector<B>{}, m.of)); \
  }                                                                                \
  static MR_INLINE void mr_store(T* to, mr_i32 value, mr_lane_mask m) {            \
    store(mr_address{to}, (mr_vector<B>)mr_narrowed(value, to), m.of);             \
  }
#if MR_WIDTH == 64
MR_MASKED(signed char, char, __builtin_ia32_loaddquqi512_mask, __builtin_ia32_storedquqi512_mask)
MR_MASKED(unsigned char, char, __builtin_ia32_loaddquqi512_mask, __builtin_ia32_storedquqi512_mask)
#elif MR_WIDTH == 32
MR_MASKED(signed char, char, __builtin_ia32_loaddquqi256_mask, __builtin_ia32_storedquqi256_mask)
MR_MASKED(unsigned char, char, __builtin_ia32_loaddquqi256_mask, __builtin_ia32_storedquqi256_mask)
MR_MASKED(short, short, __builtin_ia32_loaddquhi512_mask, __builtin_ia32_storedquhi512_mask)
MR_MASKED(unsigned short, short, __builtin_ia32_loaddquhi512_mask, __builtin_ia32_storedquhi512_mask)
#elif MR_WIDTH == 16
MR_MASKED(signed char, char, __builtin_ia32_loaddquqi128_mask, __builtin_ia32_storedquqi128_mask)
MR_MASKED(unsigned char, char, __builtin_ia32_loaddquqi128_mask, __builtin_ia32_storedquqi128_mask)
MR_MASKED(short, short, __builtin_ia32_loaddquhi256_mask, __builtin_ia32_storedquhi256_mask)
MR_MASKED(unsigned short, short, __builtin_ia32_loaddquhi256_mask, __builtin_ia32_storedquhi256_mask)
#else
MR_MASKED(short, short, __builtin_ia32_loaddquhi128_mask, __builtin_ia32_storedquhi128_mask)
MR_MASKED(unsigned short, short, __builtin_ia32_loaddquhi128_mask, __builtin_ia32_storedquhi128_mask)
#endif
#undef MR_MASKED
#endif

template <class T>
static MR_INLINE auto mr_load(const T* from, mr_lane_mask m) {
  if (mr_all(m)) return mr_load(from);
  mr_spilled<T> spilled{};
  MR_EACH_OF(lane, m) spilled.of[lane] = from[lane];
  return mr_load(spilled.of);
}
template <class T, class V>
static MR_INLINE void mr_store(T* to, V value, mr_lane_mask m) {
  if (mr_all(m)) return mr_store(to, value);
  mr_spilled<T> spilled;
  mr_store(spilled.of, value);
  MR_EACH_OF(lane, m) to[lane] = spilled.of[lane];
}

/// Elements at a constant stride, the first at `from`.
template <class T>
static MR_INLINE auto mr_load_apart(const T* from, long long step, mr_lane_mask m) {
  mr_spilled<T> spilled{};
  MR_EACH_OF(lane, m) spilled.of[lane] = from[lane * step];
  return mr_load(spilled.of);
}
template <class T>
static MR_INLINE auto mr_load_apart(const T* from, long long step) {
  mr_spilled<T> spilled;
  MR_EACH(lane) spilled.of[lane] = from[lane * step];
  return mr_load(spilled.of);
}
template <class T, class V>
static MR_INLINE void mr_store_apart(T* to, long long step, V value, mr_lane_mask m) {
  mr_spilled<T> spilled;
  mr_store(spilled.of, value);
  MR_EACH_OF(lane, m) to[lane * step] = spilled.of[lane];
}
template <class T, class V>
static MR_INLINE void mr_store_apart(T* to, long long step, V value) {
  mr_spilled<T> spilled;
  mr_store(spilled.of, value);
  MR_EACH(lane) to[lane * step] = spilled.of[lane];
}

#if !defined(MR_NARROW_LANES)
/// Whether the active lanes' positions are contiguous, as is common for neighbours at a border. If so, `first` is the
/// position of lane 0.
static MR_INLINE bool mr_are_side_by_side(mr_i32 places, mr_lane_mask m, int& first) {
  const mr_i32 start = places - mr_ramp(0);
  first = start[mr_first(m)];
  return !mr_any(m & mr_ne(start, mr_i32_of(first)));
}
static MR_INLINE bool mr_are_side_by_side(mr_i32 places, int& first) {
  first = places[0];
  return !mr_any(mr_ne(places, mr_ramp(first)));
}

/// Arbitrary positions: from[places].
template <class T>
static MR_INLINE auto mr_gather(const T* from, mr_i32 places, mr_lane_mask m) {
  int first;
  if (mr_are_side_by_side(places, m, first)) return mr_load(from + first, m);
  const mr_spilled<int> at = mr_spill(places);
  mr_spilled<T> spilled{};
  MR_EACH_OF(lane, m) spilled.of[lane] = from[at.of[lane]];
  return mr_load(spilled.of);
}
template <class T>
static MR_INLINE auto mr_gather(const T* from, mr_i32 places) {
  int first;
  if (mr_are_side_by_side(places, first)) return mr_load(from + first);
  const mr_spilled<int> at = mr_spill(places);
  mr_spilled<T> spilled;
  MR_EACH(lane) spilled.of[lane] = from[at.of[lane]];
  return mr_load(spilled.of);
}
/// If two lanes have the same position, the last lane's value remains.
template <class T, class V>
static MR_INLINE void mr_scatter(T* to, mr_i32 places, V value, mr_lane_mask m) {
  int first;
  if (mr_are_side_by_side(places, m, first)) return mr_store(to + first, value, m);
  const mr_spilled<int> at = mr_spill(places);
  mr_spilled<T> spilled;
  mr_store(spilled.of, value);
  MR_EACH_OF(lane, m) to[at.of[lane]] = spilled.of[lane];
}
#endif

/// Elements at `place(lane)`, a 64-bit offset, for arrays of several dimensions.
template <class T, class Place>
static MR_INLINE auto mr_gather_far(const T* from, Place place, mr_lane_mask m) {
  mr_spilled<T> spilled{};
  MR_EACH_OF(lane, m) spilled.of[lane] = from[place(lane)];
  return mr_load(spilled.of);
}
template <class T, class V, class Place>
static MR_INLINE void mr_scatter_far(T* to, Place place, V value, mr_lane_mask m) {
  mr_spilled<T> spilled;
  mr_store(spilled.of, value);
  MR_EACH_OF(lane, m) to[place(lane)] = spilled.of[lane];
}
