// C++ source of random numbers: Philox 4x32-10, which computes the n-th number of a sequence from the seed, the sequence and n alone. The
// 32-bit words equal those of cuRAND's Philox after curand_init(seed, sequence, 0).
//
// Both devices give the same bits, so no compiler may contract operations: products are never operands of + or -, and sums of products are
// written as fmaf.

const fn = (signature: string, body: string): string => `static __device__ __forceinline__ ${signature} {\n${body}\n}`;

export const RANDOM_HELPERS: Readonly<Record<string, string>> = {
  mr_random_seed: fn(
    'void mr_random_seed(unsigned* state, unsigned seed, unsigned sequence)',
    '  state[0] = seed; state[1] = sequence; state[2] = 0u;',
  ),
  mr_random_u32: fn(
    'unsigned mr_random_u32(unsigned* state)',
    `  const unsigned drawn = state[2];
  if ((drawn & 3u) == 0u) {
    unsigned a = drawn >> 2, b = 0u, c = state[1], d = 0u, key = state[0], more = 0u;
    for (int round = 0; round < 10; round++) {
      const unsigned long long first = 0xd2511f53ull * a, second = 0xcd9e8d57ull * c;
      a = (unsigned)(second >> 32) ^ b ^ key;
      b = (unsigned)second;
      c = (unsigned)(first >> 32) ^ d ^ more;
      d = (unsigned)first;
      key += 0x9e3779b9u;
      more += 0xbb67ae85u;
    }
    state[3] = a; state[4] = b; state[5] = c; state[6] = d;
  }
  state[2] = drawn + 1u;
  // No array indexing, so that the state can stay in registers.
  const unsigned at = drawn & 3u;
  return at == 0u ? state[3] : at == 1u ? state[4] : at == 2u ? state[5] : state[6];`,
  ),
  // 24 bits, so that every value is exact as a float and 1 does not occur.
  mr_random_uniform: fn(
    'float mr_random_uniform(unsigned* state)',
    '  return (float)(mr_random_u32(state) >> 8) * 5.9604644775390625e-8f;',
  ),
  // Box-Muller: sqrt(-2 ln u) cos(2 pi v). The logarithm uses the atanh series around 1, for a mantissa from sqrt(1/2) to sqrt(2); the
  // angle is reduced to the nearest quarter turn, for the sine and cosine series.
  mr_random_normal: fn(
    'float mr_random_normal(unsigned* state)',
    `  const unsigned u = (mr_random_u32(state) >> 8) + 1u;
  const unsigned v = mr_random_u32(state) >> 8;
  const unsigned bits = __float_as_uint((float)u);
  const int exponent = (int)(bits - 0x3f3504f3u) >> 23;
  const float fraction = __uint_as_float(bits - ((unsigned)exponent << 23));
  const float z = (fraction - 1.0f) / (fraction + 1.0f);
  const float zz = z * z;
  const float series = fmaf(zz, fmaf(zz, fmaf(zz, 0.222222222f, 0.285714286f), 0.4f), 0.666666667f);
  const float logarithm = fmaf((float)(exponent - 24), 0.693147181f, fmaf(zz * z, series, z + z));
  const float radius = sqrtf(-2.0f * logarithm);
  const unsigned quarter = (v + 0x200000u) >> 22;
  const float x = (float)((int)v - (int)(quarter << 22)) * 3.74507028e-7f;
  const float xx = x * x;
  const float sine = fmaf(xx, fmaf(xx, fmaf(xx, 2.75573192e-6f, -1.98412698e-4f), 8.33333333e-3f), -0.166666667f);
  const float cosine = fmaf(xx, fmaf(xx, fmaf(xx, fmaf(xx, -2.75573192e-7f, 2.48015873e-5f), -1.38888889e-3f), 4.16666667e-2f), -0.5f);
  const bool is_sine = (quarter & 1u) != 0u;
  const float size = is_sine ? radius * x : radius;
  const float signed_size = quarter == 1u || quarter == 2u ? -size : size;
  return fmaf(signed_size * xx, is_sine ? sine : cosine, signed_size);`,
  ),
};

/** Other helpers that a helper calls. */
export function randomNeeds(name: string): readonly string[] {
  return name === 'mr_random_uniform' || name === 'mr_random_normal' ? ['mr_random_u32'] : [];
}
