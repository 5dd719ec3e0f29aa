// cuRAND's generators for device code, with its bits: XORWOW (Marsaglia 2003), Philox 4x32-10 (Salmon et al. 2011) and
// MRG32k3a (L'Ecuyer 1999). The states have cuRAND's sizes, because hosts allocate them as bytes.
#pragma once

#include "curand_jumps.h"
#include "vectors.h"

/// Which distribution the second value of the last pair belongs to, if it was not returned yet.
enum : int { mr_no_extra = 0, mr_normal_extra = 1, mr_log_normal_extra = 2 };

struct curandStateXORWOW {
  unsigned d, v[5];
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned STATE;
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
struct curandStateMRG32k3a {
  unsigned s1[3], s2[3];
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
static_assert(sizeof(curandStateXORWOW) == 48 && sizeof(curandStateMRG32k3a) == 48, "cuRAND's states have 48 bytes.");
static_assert(sizeof(curandStatePhilox4_32_10) == 64, "cuRAND's state of Philox has 64 bytes.");
typedef curandStateXORWOW curandState, curandState_t, curandStateXORWOW_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

template <class State>
MR_INLINE void mr_forget_extras(State* state) {
  state->boxmuller_flag = state->boxmuller_flag_double = mr_no_extra;
  state->boxmuller_extra = 0;
  state->boxmuller_extra_double = 0;
}

// XORWOW.

static constexpr unsigned mr_weyl_step = 362437;

inline unsigned curand(curandStateXORWOW* state) {
  state->d += mr_weyl_step;
  return mr_xorwow_step(state->v) + state->d;
}
MR_APART void skipahead(unsigned long long n, curandStateXORWOW* state) {
  mr_jump_xorwow(state->v, n, 0);
  state->d += mr_weyl_step * static_cast<unsigned>(n);
}
/// The counter stays: 2^67 steps are a multiple of its period.
MR_APART void skipahead_sequence(unsigned long long n, curandStateXORWOW* state) {
  mr_jump_xorwow(state->v, n, mr_xorwow_spacing);
}
MR_APART void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                          curandStateXORWOW* state) {
  const unsigned low = 1099087573u * (static_cast<unsigned>(seed) ^ 0xaad26b49u);
  const unsigned high = 2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddu);
  state->d = 6615241u + high + low;
  state->v[0] = 123456789u + low;
  state->v[1] = 362436069u ^ low;
  state->v[2] = 521288629u + high;
  state->v[3] = 88675123u ^ high;
  state->v[4] = 5783321u + low;
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
  mr_forget_extras(state);
}

// Philox 4x32-10.

inline uint4 mr_philox_block(uint4 c, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = 0xd2511f53ull * c.x, second = 0xcd9e8d57ull * c.z;
    c = {static_cast<unsigned>(second >> 32) ^ c.y ^ key.x, static_cast<unsigned>(second),
         static_cast<unsigned>(first >> 32) ^ c.w ^ key.y, static_cast<unsigned>(first)};
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return c;
}
MR_INLINE unsigned long long mr_joined(unsigned low, unsigned high) {
  return static_cast<unsigned long long>(high) << 32 | low;
}
MR_INLINE void mr_advance_high(curandStatePhilox4_32_10* state, unsigned long long n) {
  const unsigned long long high = mr_joined(state->ctr.z, state->ctr.w) + n;
  state->ctr.z = static_cast<unsigned>(high);
  state->ctr.w = static_cast<unsigned>(high >> 32);
}
MR_INLINE void mr_advance(curandStatePhilox4_32_10* state, unsigned long long n) {
  const unsigned long long low = mr_joined(state->ctr.x, state->ctr.y) + n;
  state->ctr.x = static_cast<unsigned>(low);
  state->ctr.y = static_cast<unsigned>(low >> 32);
  if (low < n) mr_advance_high(state, 1);
}
MR_INLINE unsigned mr_word(uint4 words, unsigned at) {
  return at == 0 ? words.x : at == 1 ? words.y : at == 2 ? words.z : words.w;
}
inline unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned word = mr_word(state->output, state->STATE++);
  if (state->STATE == 4) {
    mr_advance(state, 1);
    state->output = mr_philox_block(state->ctr, state->key);
    state->STATE = 0;
  }
  return word;
}
/// The next four words, which may be parts of two blocks.
inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const uint4 before = state->output;
  mr_advance(state, 1);
  state->output = mr_philox_block(state->ctr, state->key);
  const auto word = [&](unsigned at) { return at < 4 ? mr_word(before, at) : mr_word(state->output, at - 4); };
  const unsigned from = state->STATE;
  return {word(from), word(from + 1), word(from + 2), word(from + 3)};
}
MR_APART void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
  state->STATE += static_cast<unsigned>(n & 3);
  mr_advance(state, n / 4);
  if (state->STATE > 3) {
    mr_advance(state, 1);
    state->STATE -= 4;
  }
  state->output = mr_philox_block(state->ctr, state->key);
}
MR_APART void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* state) {
  mr_advance_high(state, n);
  state->output = mr_philox_block(state->ctr, state->key);
}
MR_APART void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                          curandStatePhilox4_32_10* state) {
  state->ctr = {0, 0, 0, 0};
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  state->STATE = 0;
  mr_forget_extras(state);
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

// MRG32k3a.

/// The next number, from 1 to the first modulus.
inline double curand_MRG32k3a(curandStateMRG32k3a* state) {
  const auto step = [](unsigned(&s)[3], const mr_mrg_recurrence& by) {
    const unsigned long long next = (by.a * s[0] % by.modulus + (by.b * s[1] + by.c * s[2]) % by.modulus) % by.modulus;
    s[0] = s[1];
    s[1] = s[2];
    s[2] = static_cast<unsigned>(next);
    return static_cast<long long>(next);
  };
  const long long first = step(state->s1, mr_mrg_first);
  const long long difference = first - step(state->s2, mr_mrg_second);
  return static_cast<double>(difference > 0 ? difference : difference + static_cast<long long>(mr_mrg_first.modulus));
}
/// The factor that spreads the numbers over 32 bits is cuRAND's.
inline unsigned curand(curandStateMRG32k3a* state) {
  return static_cast<unsigned>(mr_rounded(curand_MRG32k3a(state) * 1.000000048662));
}
MR_INLINE void mr_jump(curandStateMRG32k3a* state, unsigned long long count, int unit) {
  mr_jump_mrg(state->s1, mr_mrg_first, count, unit);
  mr_jump_mrg(state->s2, mr_mrg_second, count, unit);
}
MR_APART void skipahead(unsigned long long n, curandStateMRG32k3a* state) {
  mr_jump(state, n, 0);
}
/// Subsequences are 2^76 numbers apart. Of their number 51 bits count, since sequences are 2^127 apart.
MR_APART void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a* state) {
  mr_jump(state, n & ((1ull << 51) - 1), 76);
}
MR_APART void skipahead_sequence(unsigned long long n, curandStateMRG32k3a* state) {
  mr_jump(state, n, 127);
}
MR_APART void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                          curandStateMRG32k3a* state) {
  const unsigned low = static_cast<unsigned>(seed) ^ 0x55555555u;
  const unsigned high = static_cast<unsigned>(seed >> 32) ^ 0xaaaaaaaau;
  for (int i = 0; i < 3; ++i) {
    const unsigned long long first = seed == 0 ? 1 : i == 1 ? high : low;
    const unsigned long long second = seed == 0 ? 1 : i == 1 ? low : high;
    state->s1[i] = static_cast<unsigned>(first * 12345 % mr_mrg_first.modulus);
    state->s2[i] = static_cast<unsigned>(second * 12345 % mr_mrg_second.modulus);
  }
  skipahead_subsequence(subsequence, state);
  skipahead(offset, state);
  mr_forget_extras(state);
}
