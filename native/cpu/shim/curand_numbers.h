// cuRAND's distributions for device code. The builder includes this header if the source names cuRAND.
//
// Uniform numbers have cuRAND's bits. Normal ones differ in their last digits, as logarithms and sines do.
#pragma once

#include "curand_states.h"
#include "math_functions.h"

static constexpr float mr_2_to_minus_32 = 0x1p-32f;

/// In (0, 1].
MR_INLINE float mr_unit_float(unsigned bits) {
  return static_cast<float>(bits) * mr_2_to_minus_32 + mr_2_to_minus_32 / 2;
}
/// In (0, 1], of 53 bits.
MR_INLINE double mr_unit_double(unsigned low, unsigned high) {
  const unsigned long long bits = low ^ static_cast<unsigned long long>(high) << 21;
  return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
}

template <class State>
MR_INLINE float curand_uniform(State* state) {
  return mr_unit_float(curand(state));
}
static constexpr double mr_mrg_unit = 2.3283065498378288e-10;
MR_INLINE float curand_uniform(curandStateMRG32k3a* state) {
  return static_cast<float>(curand_MRG32k3a(state) * mr_mrg_unit);
}
MR_INLINE float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {mr_unit_float(bits.x), mr_unit_float(bits.y), mr_unit_float(bits.z), mr_unit_float(bits.w)};
}
MR_INLINE double curand_uniform_double(curandStateXORWOW* state) {
  const unsigned low = curand(state);
  return mr_unit_double(low, curand(state));
}
/// One word for each number, in cuRAND too.
MR_INLINE double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return static_cast<double>(curand(state)) * 0x1p-32 + 0x1p-32;
}
MR_INLINE double curand_uniform_double(curandStateMRG32k3a* state) {
  return curand_MRG32k3a(state) * mr_mrg_unit;
}
MR_INLINE double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {mr_unit_double(bits.x, bits.y), mr_unit_double(bits.z, bits.w)};
}
MR_INLINE double4 curand_uniform4_double(curandStatePhilox4_32_10* state) {
  const double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);
  return {first.x, first.y, second.x, second.y};
}

// Box-Muller: a pair of normal numbers from two uniform ones.

inline float2 mr_normals_of(float u, float angle) {
  const float radius = sqrtf(-2.0f * logf(u));
  float sine, cosine;
  sincosf(angle, &sine, &cosine);
  return {sine * radius, cosine * radius};
}
MR_INLINE float2 mr_normals_of(unsigned u, unsigned v) {
  constexpr float scale = mr_2_to_minus_32 * 6.2831855f;
  return mr_normals_of(mr_unit_float(u), fmaf(static_cast<float>(v), scale, scale / 2));
}
inline double2 mr_normals_of(double u, double turns) {
  const double radius = sqrt(-2.0 * log(u));
  double sine, cosine;
  sincos(turns * (2 * M_PI), &sine, &cosine);
  return {sine * radius, cosine * radius};
}

template <class State>
MR_INLINE float2 curand_normal2(State* state) {
  const unsigned u = curand(state);
  return mr_normals_of(u, curand(state));
}
MR_INLINE float2 curand_normal2(curandStateMRG32k3a* state) {
  const float u = curand_uniform(state);
  return mr_normals_of(u, curand_uniform(state) * 6.2831855f);
}
MR_INLINE float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  const float2 first = mr_normals_of(bits.x, bits.y), second = mr_normals_of(bits.z, bits.w);
  return {first.x, first.y, second.x, second.y};
}
template <class State>
MR_INLINE double2 curand_normal2_double(State* state) {
  const double u = curand_uniform_double(state);
  return mr_normals_of(u, curand_uniform_double(state));
}
MR_INLINE double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  const double2 uniform = curand_uniform2_double(state);
  return mr_normals_of(uniform.x, uniform.y);
}
MR_INLINE double4 curand_normal4_double(curandStatePhilox4_32_10* state) {
  const double2 first = curand_normal2_double(state), second = curand_normal2_double(state);
  return {first.x, first.y, second.x, second.y};
}

template <class State>
MR_INLINE float2 curand_log_normal2(State* state, float mean, float deviation) {
  const float2 of = curand_normal2(state);
  return {expf(mean + deviation * of.x), expf(mean + deviation * of.y)};
}
MR_INLINE float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean, float deviation) {
  const float4 of = curand_normal4(state);
  return {expf(mean + deviation * of.x), expf(mean + deviation * of.y), expf(mean + deviation * of.z),
          expf(mean + deviation * of.w)};
}
template <class State>
MR_INLINE double2 curand_log_normal2_double(State* state, double mean, double deviation) {
  const double2 of = curand_normal2_double(state);
  return {exp(mean + deviation * of.x), exp(mean + deviation * of.y)};
}
MR_INLINE double4 curand_log_normal4_double(curandStatePhilox4_32_10* state, double mean, double deviation) {
  const double2 first = curand_log_normal2_double(state, mean, deviation);
  const double2 second = curand_log_normal2_double(state, mean, deviation);
  return {first.x, first.y, second.x, second.y};
}

// One number of a pair; the state keeps the other one for the next call.

template <class State>
inline float curand_normal(State* state) {
  if (state->boxmuller_flag == mr_normal_extra) {
    state->boxmuller_flag = mr_no_extra;
    return state->boxmuller_extra;
  }
  const float2 pair = curand_normal2(state);
  state->boxmuller_extra = pair.y;
  state->boxmuller_flag = mr_normal_extra;
  return pair.x;
}
template <class State>
inline double curand_normal_double(State* state) {
  if (state->boxmuller_flag_double == mr_normal_extra) {
    state->boxmuller_flag_double = mr_no_extra;
    return state->boxmuller_extra_double;
  }
  const double2 pair = curand_normal2_double(state);
  state->boxmuller_extra_double = pair.y;
  state->boxmuller_flag_double = mr_normal_extra;
  return pair.x;
}
template <class State>
inline float curand_log_normal(State* state, float mean, float deviation) {
  if (state->boxmuller_flag == mr_log_normal_extra) {
    state->boxmuller_flag = mr_no_extra;
    return state->boxmuller_extra;
  }
  const float2 pair = curand_log_normal2(state, mean, deviation);
  state->boxmuller_extra = pair.y;
  state->boxmuller_flag = mr_log_normal_extra;
  return pair.x;
}
template <class State>
inline double curand_log_normal_double(State* state, double mean, double deviation) {
  if (state->boxmuller_flag_double == mr_log_normal_extra) {
    state->boxmuller_flag_double = mr_no_extra;
    return state->boxmuller_extra_double;
  }
  const double2 pair = curand_log_normal2_double(state, mean, deviation);
  state->boxmuller_extra_double = pair.y;
  state->boxmuller_flag_double = mr_log_normal_extra;
  return pair.x;
}

/// The smallest k whose cumulative probability reaches u, searched from the mode, where the terms are largest.
MR_APART unsigned mr_poisson_quantile(double lambda, double u) {
  const double mode = floor(lambda);
  const double at_mode = exp(mode * log(lambda) - lambda - lgamma(mode + 1));
  double below = 0;
  for (double k = mode, term = at_mode * (mode / lambda); k >= 1 && term > 1e-20; term *= --k / lambda) below += term;
  if (u > below) {
    double k = mode;
    for (double term = at_mode, sum = below + term; u > sum && term > 1e-20; sum += term) term *= lambda / ++k;
    return static_cast<unsigned>(k);
  }
  double k = mode - 1, term = at_mode * (mode / lambda);
  for (; k >= 1 && below - term >= u; term *= k / lambda, --k) below -= term;
  return static_cast<unsigned>(k);
}

/// Below 64, Knuth's product of uniform numbers, with cuRAND's results; to 4000, the quantile of one uniform number;
/// above, a rounded normal number, as in cuRAND.
template <class State>
MR_APART unsigned curand_poisson(State* state, double lambda) {
  if (lambda < 64) {
    unsigned k = 0;
    for (float product = expf(static_cast<float>(lambda)) * curand_uniform(state); product > 1.0f; ++k) {
      product *= curand_uniform(state);
    }
    return k;
  }
  if (lambda <= 4000) return mr_poisson_quantile(lambda, curand_uniform(state));
  return static_cast<unsigned>(sqrt(lambda) * curand_normal_double(state) + lambda + 0.5);
}
MR_APART uint4 curand_poisson4(curandStatePhilox4_32_10* state, double lambda) {
  const unsigned x = curand_poisson(state, lambda), y = curand_poisson(state, lambda);
  const unsigned z = curand_poisson(state, lambda), w = curand_poisson(state, lambda);
  return {x, y, z, w};
}
