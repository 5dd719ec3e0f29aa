// Integer ranges, which test whether any thread of a region can leave the bounds of an array
// (src/compiler/emission/ranges.ts). A range contains at least the values that occur; if that is not certain, the range
// and every range computed from it are unknown. Values are those of i32 and u32; a result that may have wrapped is
// unknown. CUDA C++ source uses these functions too, through scripts/gen-ranges.mjs: run `npm run gen` after a change.
#pragma once

#include "thread_index.h"

struct mr_range {
  long long low, high;
  bool is_known = true;
};
static constexpr mr_range mr_unknown{0, 0, false};

static MR_INLINE long long mr_smaller(long long a, long long b) {
  return a < b ? a : b;
}
static MR_INLINE long long mr_larger(long long a, long long b) {
  return a > b ? a : b;
}

/// Whether the range is empty: no thread reaches the code.
static MR_INLINE bool mr_is_empty(mr_range r) {
  return r.low > r.high;
}
static MR_INLINE bool mr_is_within(mr_range r, long long extent) {
  return r.is_known && (mr_is_empty(r) || (r.low >= 0 && r.high < extent));
}

static MR_INLINE mr_range mr_value(long long value) {
  return {value, value};
}
static MR_INLINE mr_range mr_between(long long low, long long high) {
  return {low, high};
}
static MR_INLINE mr_range mr_any_i32() {
  return {-2147483648ll, 2147483647ll};
}
static MR_INLINE mr_range mr_any_u32() {
  return {0, 4294967295ll};
}
static MR_INLINE mr_range mr_threads(int count) {
  return {0, count - 1};
}
static MR_INLINE mr_range mr_indices(mr_index block, mr_index dim, int count) {
  const long long first = static_cast<long long>(block.value) * dim.value;
  return {first, first + count - 1};
}

static MR_INLINE mr_range mr_to_i32(mr_range r) {
  return r.is_known && r.low >= -2147483648ll && r.high <= 2147483647ll ? r : mr_unknown;
}
static MR_INLINE mr_range mr_to_u32(mr_range r) {
  return r.is_known && r.low >= 0 && r.high <= 4294967295ll ? r : mr_unknown;
}
static MR_INLINE mr_range mr_negate(mr_range r) {
  return mr_to_i32({-r.high, -r.low, r.is_known});
}

static MR_INLINE mr_range mr_sum(mr_range a, mr_range b) {
  return {a.low + b.low, a.high + b.high, a.is_known && b.is_known};
}
static MR_INLINE mr_range mr_difference(mr_range a, mr_range b) {
  return {a.low - b.high, a.high - b.low, a.is_known && b.is_known};
}
/// For 32-bit values. The product of two values near the limit of u32 overflows 64 bits and is handled separately.
static MR_INLINE mr_range mr_product(mr_range a, mr_range b) {
  const bool is_small = a.high <= 2147483647ll && b.high <= 2147483647ll;
  if (!is_small) return mr_unknown;
  const long long p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
  return {mr_smaller(mr_smaller(p, q), mr_smaller(r, s)), mr_larger(mr_larger(p, q), mr_larger(r, s)),
          a.is_known && b.is_known};
}
static MR_INLINE mr_range mr_sum_i32(mr_range a, mr_range b) {
  return mr_to_i32(mr_sum(a, b));
}
static MR_INLINE mr_range mr_sum_u32(mr_range a, mr_range b) {
  return mr_to_u32(mr_sum(a, b));
}
static MR_INLINE mr_range mr_difference_i32(mr_range a, mr_range b) {
  return mr_to_i32(mr_difference(a, b));
}
static MR_INLINE mr_range mr_difference_u32(mr_range a, mr_range b) {
  return mr_to_u32(mr_difference(a, b));
}
static MR_INLINE mr_range mr_product_i32(mr_range a, mr_range b) {
  return mr_to_i32(mr_product(a, b));
}
static MR_INLINE mr_range mr_product_u32(mr_range a, mr_range b) {
  return mr_to_u32(mr_product(a, b));
}

static MR_INLINE mr_range mr_idiv(mr_range a, mr_range b) {
  if (b.low <= 0 || mr_is_empty(a) || mr_is_empty(b)) return mr_unknown;
  const long long low = a.low < 0 ? a.low / b.low : a.low / b.high;
  const long long high = a.high < 0 ? a.high / b.high : a.high / b.low;
  return {low, high, a.is_known && b.is_known};
}
static MR_INLINE mr_range mr_floordiv(mr_range a, mr_range b) {
  return a.low >= 0 ? mr_idiv(a, b) : mr_unknown;
}
static MR_INLINE mr_range mr_remainder(mr_range a, mr_range b) {
  return {0, mr_smaller(a.high, b.high - 1), a.is_known && b.is_known && a.low >= 0 && b.low > 0};
}
static MR_INLINE mr_range mr_shifted(mr_range a, mr_range places) {
  if (places.low != places.high) return mr_unknown;
  return {a.low >> (places.low & 31), a.high >> (places.low & 31), a.is_known && places.is_known};
}
static MR_INLINE mr_range mr_mask(mr_range mask) {
  return {0, mask.high, mask.is_known && mask.low >= 0};
}
static MR_INLINE mr_range mr_masked(mr_range a, mr_range b) {
  if (!a.is_known || a.low < 0) return mr_mask(b);
  if (!b.is_known || b.low < 0) return mr_mask(a);
  return {0, mr_smaller(a.high, b.high)};
}
static MR_INLINE mr_range mr_range_min(mr_range a, mr_range b) {
  return {mr_smaller(a.low, b.low), mr_smaller(a.high, b.high), a.is_known && b.is_known};
}
static MR_INLINE mr_range mr_range_max(mr_range a, mr_range b) {
  return {mr_larger(a.low, b.low), mr_larger(a.high, b.high), a.is_known && b.is_known};
}
static MR_INLINE mr_range mr_clamped(mr_range value, mr_range low, mr_range high) {
  return mr_range_min(mr_range_max(value, low), high);
}
static MR_INLINE mr_range mr_either(mr_range a, mr_range b) {
  return {mr_smaller(a.low, b.low), mr_larger(a.high, b.high), a.is_known && b.is_known};
}

// Narrows a range to the values for which a condition holds. An unknown bound narrows nothing.
static MR_INLINE mr_range mr_at_most(mr_range r, mr_range bound) {
  return {r.low, bound.is_known ? mr_smaller(r.high, bound.high) : r.high, r.is_known};
}
static MR_INLINE mr_range mr_at_least(mr_range r, mr_range bound) {
  return {bound.is_known ? mr_larger(r.low, bound.low) : r.low, r.high, r.is_known};
}
static MR_INLINE mr_range mr_below(mr_range r, mr_range bound) {
  return {r.low, bound.is_known ? mr_smaller(r.high, bound.high - 1) : r.high, r.is_known};
}
static MR_INLINE mr_range mr_above(mr_range r, mr_range bound) {
  return {bound.is_known ? mr_larger(r.low, bound.low + 1) : r.low, r.high, r.is_known};
}
/// Removes a single value if it is at an end of the range.
static MR_INLINE mr_range mr_except(mr_range r, mr_range bound) {
  const bool is_one = bound.is_known && bound.low == bound.high;
  return {r.low + (is_one && r.low == bound.low), r.high - (is_one && r.high == bound.low), r.is_known};
}

// The range of a counter in the body of its loop. `bound` is the first value beyond; the last step must not wrap.
static MR_INLINE mr_range mr_count_up(mr_range from, mr_range bound, mr_range step, long long most) {
  const bool is_known = from.is_known && bound.is_known && step.is_known && step.low >= 0;
  return {from.low, bound.high - 1, is_known && bound.high - 1 + step.high <= most};
}
static MR_INLINE mr_range mr_count_down(mr_range from, mr_range bound, mr_range step, long long least) {
  const bool is_known = from.is_known && bound.is_known && step.is_known && step.low >= 0;
  return {bound.low + 1, from.high, is_known && bound.low + 1 - step.high >= least};
}
static MR_INLINE mr_range mr_count_up_i32(mr_range from, mr_range bound, mr_range step) {
  return mr_count_up(from, bound, step, 2147483647ll);
}
static MR_INLINE mr_range mr_count_up_u32(mr_range from, mr_range bound, mr_range step) {
  return mr_count_up(from, bound, step, 4294967295ll);
}
static MR_INLINE mr_range mr_count_down_i32(mr_range from, mr_range bound, mr_range step) {
  return mr_count_down(from, bound, step, -2147483648ll);
}
static MR_INLINE mr_range mr_count_down_u32(mr_range from, mr_range bound, mr_range step) {
  return mr_count_down(from, bound, step, 0);
}
/// A counter that is divided by at least 1 in each iteration.
static MR_INLINE mr_range mr_count_shrink_i32(mr_range from, mr_range bound, mr_range by) {
  return {bound.low + 1, mr_larger(from.high, 0), from.is_known && bound.is_known && by.is_known && by.low >= 1};
}
static MR_INLINE mr_range mr_count_shrink_u32(mr_range from, mr_range bound, mr_range by) {
  return mr_count_shrink_i32(from, bound, by);
}
