// Jumps of cuRAND's generators: XORWOW's by powers of a matrix over bits, MRG32k3a's by powers of two matrices modulo
// primes.
#pragma once

#include "types.h"

/// Kernels are compiled with every call inlined, except these.
#define MR_APART static __attribute__((noinline, unused))

/// A step of xorwow's five words, without its counter.
static inline unsigned mr_xorwow_step(unsigned (&v)[5]) {
  const unsigned t = v[0] ^ v[0] >> 2;
  v[0] = v[1];
  v[1] = v[2];
  v[2] = v[3];
  v[3] = v[4];
  return v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
}

/// A linear map of 160 bits: the images of the single bits.
struct mr_xorwow_map {
  unsigned of[160][5];

  void apply(unsigned (&v)[5]) const {
    unsigned to[5] = {};
    for (int bit = 0; bit < 160; ++bit) {
      const unsigned mask = 0u - (v[bit / 32] >> bit % 32 & 1u);
      for (int word = 0; word < 5; ++word) to[word] ^= of[bit][word] & mask;
    }
    for (int word = 0; word < 5; ++word) v[word] = to[word];
  }
};

/// Subsequences of a seed begin this far apart, as a power of two.
static constexpr int mr_xorwow_spacing = 67;
static constexpr int mr_xorwow_most_maps = mr_xorwow_spacing + 64;

/// The maps of 1, 2, 4, ... steps, which all threads share. A map is made when a jump first needs it: 15 us each.
struct mr_xorwow_powers {
  mr_xorwow_map map[mr_xorwow_most_maps];
  int made;
  bool is_growing;
};
static mr_xorwow_powers mr_xorwow_power;

MR_APART void mr_make_xorwow_maps(int count) {
  mr_xorwow_powers& power = mr_xorwow_power;
  while (__atomic_exchange_n(&power.is_growing, true, __ATOMIC_ACQUIRE)) mr_relax_core();
  for (int at = power.made; at < count; ++at) {
    mr_xorwow_map& made = power.map[at];
    for (int bit = 0; bit < 160; ++bit) {
      unsigned v[5] = {};
      v[bit / 32] = 1u << bit % 32;
      if (at == 0) {
        mr_xorwow_step(v);
      } else {
        power.map[at - 1].apply(v);
        power.map[at - 1].apply(v);
      }
      for (int word = 0; word < 5; ++word) made.of[bit][word] = v[word];
    }
    __atomic_store_n(&power.made, at + 1, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&power.is_growing, false, __ATOMIC_RELEASE);
}

/// Goes on by count * 2^unit steps.
MR_APART void mr_jump_xorwow(unsigned (&v)[5], unsigned long long count, int unit) {
  if (count == 0) return;
  const int needed = unit + 64 - __builtin_clzll(count);
  if (__atomic_load_n(&mr_xorwow_power.made, __ATOMIC_ACQUIRE) < needed) mr_make_xorwow_maps(needed);
  for (int at = unit; count != 0; ++at, count >>= 1) {
    if (count & 1) mr_xorwow_power.map[at].apply(v);
  }
}

/// One of MRG32k3a's two recurrences: its modulus, and the image of (x0, x1, x2) in one step is (x1, x2, a x0 + b x1 +
/// c x2).
struct mr_mrg_recurrence {
  unsigned long long modulus, a, b, c;
};
static constexpr mr_mrg_recurrence mr_mrg_first = {4294967087ull, 4294967087ull - 810728ull, 1403580ull, 0};
static constexpr mr_mrg_recurrence mr_mrg_second = {4294944443ull, 4294944443ull - 1370589ull, 0, 527612ull};

struct mr_mrg_map {
  unsigned long long of[3][3];
};
MR_APART mr_mrg_map mr_mrg_product(const mr_mrg_map& a, const mr_mrg_map& b, unsigned long long modulus) {
  mr_mrg_map product = {};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      for (int k = 0; k < 3; ++k) {
        product.of[row][column] = (product.of[row][column] + a.of[row][k] * b.of[k][column] % modulus) % modulus;
      }
    }
  }
  return product;
}

/// Goes on by count * 2^unit steps.
MR_APART void mr_jump_mrg(unsigned (&s)[3], const mr_mrg_recurrence& by, unsigned long long count, int unit) {
  mr_mrg_map power = {{{0, 1, 0}, {0, 0, 1}, {by.a, by.b, by.c}}};
  for (int at = 0; at < unit && count != 0; ++at) power = mr_mrg_product(power, power, by.modulus);
  for (; count != 0; count >>= 1) {
    if (count & 1) {
      unsigned long long to[3] = {};
      for (int row = 0; row < 3; ++row) {
        for (int k = 0; k < 3; ++k) to[row] = (to[row] + power.of[row][k] * s[k] % by.modulus) % by.modulus;
      }
      for (int row = 0; row < 3; ++row) s[row] = static_cast<unsigned>(to[row]);
    }
    power = mr_mrg_product(power, power, by.modulus);
  }
}
