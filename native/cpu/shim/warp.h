// Operations that a thread can wait for: block barriers and warp primitives.
//
// A lane that reaches one leaves a request and waits. When no lane of the warp runs any more, the lanes with the same
// request and mask are answered together, once the other lanes of the mask have arrived or returned (block_threads.h
// calls mr_answer). If a mask names lanes that will never arrive, which is undefined in CUDA, the waiting lanes are
// answered anyway, so no thread waits forever.
#pragma once

#include "device_functions.h"
#include "thread_stacks.h"

enum class mr_warp_call : unsigned char { sync, shuffle, ballot, match_any, match_all, reduce, active };

struct mr_request {
  mr_warp_call call;
  unsigned mask;
  /// Requests are answered together only if these are equal: the operation, or the position in the source.
  unsigned site;
  unsigned long long value;
  /// For a shuffle: the lane to read.
  int source;
  unsigned long long result;
};

MR_INLINE void __syncthreads() {
  mr_wait();
}
MR_INLINE const mr_block_barrier& mr_vote_in_block(int predicate) {
  mr_block_barrier& barrier = mr_run_of_block.barrier;
  ++barrier.voters;
  if (predicate != 0) ++barrier.votes;
  mr_wait();
  return barrier;
}
MR_INLINE int __syncthreads_count(int predicate) {
  return static_cast<int>(mr_vote_in_block(predicate).last_votes);
}
MR_INLINE int __syncthreads_and(int predicate) {
  const mr_block_barrier& barrier = mr_vote_in_block(predicate);
  return barrier.last_votes == barrier.last_voters;
}
MR_INLINE int __syncthreads_or(int predicate) {
  return mr_vote_in_block(predicate).last_votes != 0;
}

/// Waits until the lanes with the same request are answered, and returns the answer.
MR_INLINE unsigned long long mr_ask(mr_warp_call call, unsigned mask, unsigned site, unsigned long long value,
                                    int source = 0) {
  mr_request request{call, mask, site, value, source, value};
  mr_run_of_block.running->request = &request;
  mr_wait();
  return request.result;
}

template <class T>
MR_INLINE T mr_value_from(unsigned long long bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
/// The value's bits, zero-extended.
template <class T>
MR_INLINE unsigned long long mr_bits_of(const T& value) {
  static_assert(sizeof(T) <= 8, "A warp primitive takes values of at most 64 bits.");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

static constexpr unsigned mr_all_lanes = 0xffffffffu;

MR_INLINE void __syncwarp(unsigned mask = mr_all_lanes) {
  mr_ask(mr_warp_call::sync, mask, 0, 0);
}

/// Indices are class objects of the shim: a shuffle of one returns CUDA's type.
template <class T>
struct mr_shuffled {
  using type = T;
};
template <>
struct mr_shuffled<mr_index> {
  using type = unsigned;
};
template <>
struct mr_shuffled<mr_product> {
  using type = unsigned;
};

/// The lane that a lane reads; itself if that is outside its segment of `width` lanes.
struct mr_from {
  static MR_INLINE int index(int, int first, int width, int by) { return first + (by & (width - 1)); }
  static MR_INLINE int up(int lane, int first, int, int by) { return lane - by < first ? lane : lane - by; }
  static MR_INLINE int down(int lane, int, int, int by) { return lane + by; }
  static MR_INLINE int exclusive_or(int lane, int, int, int by) { return lane ^ by; }
};
#define MR_SHUFFLE(name, from)                                                                   \
  template <class T>                                                                             \
  MR_INLINE typename mr_shuffled<T>::type name(unsigned mask, T value, int by, int width = 32) { \
    using Value = typename mr_shuffled<T>::type;                                                 \
    const int lane = mr_run_of_block.running->lane;                                              \
    const int first = lane & ~(width - 1);                                                       \
    const int wanted = mr_from::from(lane, first, width, by);                                    \
    const int source = wanted >= 0 && wanted < first + width ? wanted : lane;                    \
    const unsigned long long bits = mr_bits_of(static_cast<Value>(value));                       \
    return mr_value_from<Value>(mr_ask(mr_warp_call::shuffle, mask, 0, bits, source));           \
  }
MR_SHUFFLE(__shfl_sync, index)
MR_SHUFFLE(__shfl_up_sync, up)
MR_SHUFFLE(__shfl_down_sync, down)
MR_SHUFFLE(__shfl_xor_sync, exclusive_or)
#undef MR_SHUFFLE

/// Of different sites, so that lanes of different votes are not answered together.
MR_INLINE unsigned mr_ballot(unsigned mask, unsigned site, bool predicate) {
  return static_cast<unsigned>(mr_ask(mr_warp_call::ballot, mask, site, predicate));
}
MR_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return mr_ballot(mask, 0, predicate != 0);
}
MR_INLINE int __any_sync(unsigned mask, int predicate) {
  return mr_ballot(mask, 1, predicate != 0) != 0;
}
MR_INLINE int __all_sync(unsigned mask, int predicate) {
  return mr_ballot(mask, 2, predicate == 0) == 0;
}
/// The lanes that reach the same line of the source together.
MR_INLINE unsigned __activemask(unsigned site = __builtin_LINE()) {
  return static_cast<unsigned>(mr_ask(mr_warp_call::active, mr_all_lanes, site, 0));
}

template <class T>
MR_INLINE unsigned mr_match_any(unsigned mask, unsigned site, T value) {
  using Value = typename mr_shuffled<T>::type;
  return static_cast<unsigned>(mr_ask(mr_warp_call::match_any, mask, site, mr_bits_of(static_cast<Value>(value))));
}
template <class T>
MR_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  return mr_match_any(mask, 0, value);
}
template <class T>
MR_INLINE unsigned __match_all_sync(unsigned mask, T value, int* are_all) {
  using Value = typename mr_shuffled<T>::type;
  const auto lanes =
      static_cast<unsigned>(mr_ask(mr_warp_call::match_all, mask, 0, mr_bits_of(static_cast<Value>(value))));
  *are_all = lanes != 0;
  return lanes;
}

enum class mr_reduction : unsigned {
  add,
  min_unsigned,
  max_unsigned,
  min_signed,
  max_signed,
  all_bits,
  any_bits,
  odd_bits
};
template <class T>
MR_INLINE T mr_reduce(unsigned mask, mr_reduction how, T value) {
  return mr_value_from<T>(mr_ask(mr_warp_call::reduce, mask, static_cast<unsigned>(how), static_cast<unsigned>(value)));
}
#define MR_REDUCE(name, of_unsigned, of_signed)                                                                        \
  MR_INLINE unsigned name(unsigned mask, unsigned value) { return mr_reduce(mask, mr_reduction::of_unsigned, value); } \
  MR_INLINE int name(unsigned mask, int value) { return mr_reduce(mask, mr_reduction::of_signed, value); }             \
  MR_INLINE unsigned name(unsigned mask, mr_index value) { return name(mask, static_cast<unsigned>(value)); }          \
  MR_INLINE unsigned name(unsigned mask, mr_product value) { return name(mask, value.value); }
MR_REDUCE(__reduce_add_sync, add, add)
MR_REDUCE(__reduce_min_sync, min_unsigned, min_signed)
MR_REDUCE(__reduce_max_sync, max_unsigned, max_signed)
MR_REDUCE(__reduce_and_sync, all_bits, all_bits)
MR_REDUCE(__reduce_or_sync, any_bits, any_bits)
MR_REDUCE(__reduce_xor_sync, odd_bits, odd_bits)
#undef MR_REDUCE

MR_INLINE unsigned mr_reduced(mr_reduction how, unsigned a, unsigned b) {
  switch (how) {
    case mr_reduction::add:
      return a + b;
    case mr_reduction::min_unsigned:
      return a < b ? a : b;
    case mr_reduction::max_unsigned:
      return a < b ? b : a;
    case mr_reduction::min_signed:
      return static_cast<int>(a) < static_cast<int>(b) ? a : b;
    case mr_reduction::max_signed:
      return static_cast<int>(a) < static_cast<int>(b) ? b : a;
    case mr_reduction::all_bits:
      return a & b;
    case mr_reduction::any_bits:
      return a | b;
    default:
      return a ^ b;
  }
}

/// The requests of a warp's lanes; null for a lane without one.
struct mr_warp_requests {
  mr_request* of[32];
};

static void mr_compute(const mr_warp_requests& requests, unsigned group) {
  const int first = __builtin_ctz(group);
  const mr_request& one = *requests.of[first];
  switch (one.call) {
    case mr_warp_call::sync:
      return;
    case mr_warp_call::shuffle:
      for (unsigned rest = group; rest != 0; rest &= rest - 1) {
        mr_request& lane = *requests.of[__builtin_ctz(rest)];
        // As on GPUs. CUDA leaves the value of a lane that does not take part undefined, and published programs add it.
        lane.result = group >> lane.source & 1u ? requests.of[lane.source]->value : 0;
      }
      return;
    case mr_warp_call::match_any:
      for (unsigned rest = group; rest != 0; rest &= rest - 1) {
        mr_request& lane = *requests.of[__builtin_ctz(rest)];
        lane.result = 0;
        for (unsigned other = group; other != 0; other &= other - 1) {
          if (requests.of[__builtin_ctz(other)]->value == lane.value) lane.result |= 1u << __builtin_ctz(other);
        }
      }
      return;
    default:
      break;
  }
  // All lanes receive the same answer.
  unsigned long long answer = one.call == mr_warp_call::reduce ? one.value : 0;
  if (one.call == mr_warp_call::active || one.call == mr_warp_call::match_all) answer = group;
  for (unsigned rest = group; rest != 0; rest &= rest - 1) {
    const int number = __builtin_ctz(rest);
    const unsigned long long value = requests.of[number]->value;
    if (one.call == mr_warp_call::ballot && value != 0) answer |= 1u << number;
    if (one.call == mr_warp_call::match_all && value != one.value) answer = 0;
    if (one.call == mr_warp_call::reduce && number != first) {
      answer =
          mr_reduced(static_cast<mr_reduction>(one.site), static_cast<unsigned>(answer), static_cast<unsigned>(value));
    }
  }
  for (unsigned rest = group; rest != 0; rest &= rest - 1) {
    mr_request& lane = *requests.of[__builtin_ctz(rest)];
    lane.result = one.call == mr_warp_call::ballot ? answer & lane.mask : answer;
  }
}

/// Whether a lane votes with a mask that does not contain it, for which CUDA defines no result. Programs that number
/// the lanes before their own expect the votes of the lanes in the mask, whatever the masks of these lanes are.
static MR_INLINE bool mr_is_foreign(const mr_request& request, int lane) {
  return request.call == mr_warp_call::ballot && (request.mask >> lane & 1u) == 0;
}
/// The lanes of `waiting` that vote for the same, if one of them is foreign; else 0.
static unsigned mr_foreign_group(const mr_warp_requests& requests, unsigned waiting, const mr_request& one) {
  unsigned group = 0;
  bool is_foreign = false;
  for (unsigned rest = waiting; rest != 0; rest &= rest - 1) {
    const int number = __builtin_ctz(rest);
    const mr_request& request = *requests.of[number];
    if (request.call != one.call || request.site != one.site) continue;
    group |= 1u << number;
    is_foreign |= mr_is_foreign(request, number);
  }
  return is_foreign ? group : 0;
}

/// Answers some of the lanes in `waiting`, when none runs, and returns them. `alive`: the lanes that have not returned.
/// `may_be_incomplete`: whether to answer without the lanes of a mask that are elsewhere, if there is no other request.
static unsigned mr_answer(const mr_warp_requests& requests, unsigned waiting, unsigned alive,
                          bool may_be_incomplete = true) {
  unsigned chosen = 0;
  for (unsigned rest = waiting; rest != 0;) {
    const mr_request& one = *requests.of[__builtin_ctz(rest)];
    unsigned group = 0;
    for (unsigned other = rest; other != 0; other &= other - 1) {
      const int number = __builtin_ctz(other);
      const mr_request& request = *requests.of[number];
      if (request.call == one.call && request.mask == one.mask && request.site == one.site) group |= 1u << number;
    }
    if (one.call == mr_warp_call::ballot && group != one.mask) {
      if (const unsigned all = mr_foreign_group(requests, waiting, one)) group = all;
    }
    rest &= ~group;
    const bool is_complete = (one.mask & alive & ~group) == 0 && one.call != mr_warp_call::active;
    if (is_complete || (chosen == 0 && (may_be_incomplete || one.call == mr_warp_call::active))) chosen = group;
    if (is_complete) break;
  }
  if (chosen != 0) mr_compute(requests, chosen);
  return chosen;
}
