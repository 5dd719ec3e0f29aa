// Texture functions. Included if a source names textures or surfaces.
//
// The formulas are those of the chapter about texture fetches of CUDA's programming guide: a linear filter weighs
// elements by 8 bits of the fraction of the coordinates. All functions are templates of the type that they return, and
// convert its components from 32 bits, because a texture object has no element type in CUDA C++.
#pragma once

#include "launch_abi.h"
#include "math_functions.h"
#include "vectors.h"

typedef unsigned long long cudaTextureObject_t;
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };

// The numbers of native/protocol/protocol.json.
enum { mr_u8 = 0, mr_u16, mr_u32, mr_i8, mr_i16, mr_i32, mr_f16, mr_f32 };
enum { mr_wrap = 0, mr_clamp, mr_mirror, mr_border };
enum { mr_normalized_coordinates = 1, mr_normalized_float = 2 };

/// One element, as bits of 32-bit integers or floats. Channels that the texture does not have are 0.
struct mr_texel {
  unsigned bits[4] = {};
};

MR_INLINE float mr_float_of_bits(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}
MR_INLINE unsigned mr_bits_of_float(float value) {
  return __builtin_bit_cast(unsigned, value);
}
MR_INLINE float mr_float_of_half(unsigned half) {
  const unsigned sign = (half & 0x8000u) << 16;
  const unsigned rest = half & 0x7fffu;
  // Subnormal numbers are multiples of 2^-24.
  if (rest < 0x400u) return (sign != 0 ? -1.0f : 1.0f) * static_cast<float>(rest) * 0x1p-24f;
  if (rest >= 0x7c00u) return mr_float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  return mr_float_of_bits(sign | ((rest << 13) + 0x38000000u));
}

template <class T>
MR_INLINE T mr_channel(const char* element, int channel) {
  T value;
  __builtin_memcpy(&value, element + channel * sizeof(T), sizeof(T));
  return value;
}

/// The value of a channel as it is read: of integers also as a normalized float.
inline unsigned mr_channel_bits(const MrTexture& texture, const char* element, int channel) {
  const bool is_normalized = (texture.flags & mr_normalized_float) != 0;
  switch (texture.format) {
    case mr_u8: {
      const unsigned char value = mr_channel<unsigned char>(element, channel);
      return is_normalized ? mr_bits_of_float(value / 255.0f) : value;
    }
    case mr_u16: {
      const unsigned short value = mr_channel<unsigned short>(element, channel);
      return is_normalized ? mr_bits_of_float(value / 65535.0f) : value;
    }
    case mr_i8: {
      const int value = mr_channel<signed char>(element, channel);
      return is_normalized ? mr_bits_of_float(value < -127 ? -1.0f : value / 127.0f) : static_cast<unsigned>(value);
    }
    case mr_i16: {
      const int value = mr_channel<short>(element, channel);
      return is_normalized ? mr_bits_of_float(value < -32767 ? -1.0f : value / 32767.0f) : static_cast<unsigned>(value);
    }
    case mr_f16:
      return mr_bits_of_float(mr_float_of_half(mr_channel<unsigned short>(element, channel)));
    default:
      return mr_channel<unsigned>(element, channel);
  }
}

/// The index of an element after the address mode; -1 for a border. Modes that repeat need normalized coordinates.
MR_INLINE int mr_addressed(const MrTexture& texture, int axis, long long index, int size) {
  if (index >= 0 && index < size) return static_cast<int>(index);
  const int mode = texture.address[axis];
  if (mode == mr_border) return -1;
  if ((texture.flags & mr_normalized_coordinates) != 0) {
    // Coordinates are in the texture already, so the index is at most one beside it.
    if (mode == mr_wrap) return index < 0 ? size - 1 : 0;
    if (mode == mr_mirror) return index < 0 ? 0 : size - 1;
  }
  return index < 0 ? 0 : size - 1;
}

inline mr_texel mr_texel_at(const MrTexture& texture, long long x, long long y, long long z) {
  mr_texel texel;
  const int i = mr_addressed(texture, 0, x, texture.width);
  const int j = mr_addressed(texture, 1, y, texture.height);
  const int k = mr_addressed(texture, 2, z, texture.depth);
  if (i < 0 || j < 0 || k < 0) return texel;
  const char* const element = texture.data + static_cast<unsigned long long>(k) * texture.layer +
                              static_cast<unsigned long long>(j) * texture.pitch +
                              static_cast<unsigned long long>(i) * texture.element_bytes;
  for (int channel = 0; channel < texture.channels; ++channel)
    texel.bits[channel] = mr_channel_bits(texture, element, channel);
  return texel;
}

/// A coordinate in elements, in the texture if the address mode repeats it.
MR_INLINE float mr_in_elements(const MrTexture& texture, int axis, float at, int size) {
  // Also bounds what the caller converts to an integer. NaN counts as 0.
  constexpr float most = 0x1p30f;
  if (!(at > -most)) at = at == at ? -most : 0.0f;
  if (at > most) at = most;
  if ((texture.flags & mr_normalized_coordinates) == 0) return at;
  const float whole = floorf(at);
  if (texture.address[axis] == mr_wrap) {
    at -= whole;
  } else if (texture.address[axis] == mr_mirror) {
    const bool is_odd = whole - 2.0f * floorf(whole * 0.5f) != 0.0f;
    at = is_odd ? 1.0f - (at - whole) : at - whole;
  }
  at *= static_cast<float>(size);
  return at > most ? most : at < -most ? -most : at;
}

/// An element before the coordinate, and the weight of the next one.
struct mr_texel_place {
  long long index;
  float weight;
};
MR_INLINE mr_texel_place mr_placed(float at) {
  const long long fixed = static_cast<long long>(floor(static_cast<double>(at) * 256.0 - 128.0 + 0.5));
  return {fixed >> 8, static_cast<float>(fixed & 255) * (1.0f / 256.0f)};
}

/// Adds `weight` times the element.
MR_INLINE void mr_add_texel(const MrTexture& texture, long long x, long long y, long long z, float weight,
                            float (&sum)[4]) {
  if (weight == 0.0f) return;
  const mr_texel texel = mr_texel_at(texture, x, y, z);
  for (int channel = 0; channel < 4; ++channel) sum[channel] += weight * mr_float_of_bits(texel.bits[channel]);
}

/// A function of its own in each kernel: with a copy for each read, the compiler takes seconds.
template <int Axes>
__attribute__((noinline)) mr_texel mr_fetched(cudaTextureObject_t object, float x, float y, float z) {
  const MrTexture& texture = *reinterpret_cast<const MrTexture*>(object);
  x = mr_in_elements(texture, 0, x, texture.width);
  if (Axes > 1) y = mr_in_elements(texture, 1, y, texture.height);
  if (Axes > 2) z = mr_in_elements(texture, 2, z, texture.depth);
  if (texture.filter == 0) {
    return mr_texel_at(texture, static_cast<long long>(floorf(x)), Axes > 1 ? static_cast<long long>(floorf(y)) : 0,
                       Axes > 2 ? static_cast<long long>(floorf(z)) : 0);
  }
  float sum[4] = {};
  const mr_texel_place a = mr_placed(x);
  const mr_texel_place b = Axes > 1 ? mr_placed(y) : mr_texel_place{0, 0.0f};
  const mr_texel_place c = Axes > 2 ? mr_placed(z) : mr_texel_place{0, 0.0f};
  for (int corner = 0; corner < 1 << Axes; ++corner) {
    const int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
    const float weight = (i != 0 ? a.weight : 1.0f - a.weight) * (j != 0 ? b.weight : 1.0f - b.weight) *
                         (k != 0 ? c.weight : 1.0f - c.weight);
    mr_add_texel(texture, a.index + i, b.index + j, c.index + k, weight, sum);
  }
  mr_texel texel;
  for (int channel = 0; channel < 4; ++channel) texel.bits[channel] = mr_bits_of_float(sum[channel]);
  return texel;
}

/// Elements of linear memory by their index; zeros outside.
__attribute__((noinline)) static mr_texel mr_fetched_at(cudaTextureObject_t object, int x) {
  const MrTexture& texture = *reinterpret_cast<const MrTexture*>(object);
  return x < 0 || x >= texture.width ? mr_texel() : mr_texel_at(texture, x, 0, 0);
}

template <class T>
struct mr_texel_as {
  MR_INLINE static T of(const mr_texel& texel) { return static_cast<T>(texel.bits[0]); }
};
template <>
struct mr_texel_as<float> {
  MR_INLINE static float of(const mr_texel& texel) { return mr_float_of_bits(texel.bits[0]); }
};
#define MR_TEXELS(name, T, convert)                                                                                 \
  template <>                                                                                                       \
  struct mr_texel_as<name##1> {                                                                                     \
    MR_INLINE static name##1 of(const mr_texel& texel) { return {convert(texel.bits[0])}; }                         \
  };                                                                                                                \
  template <>                                                                                                       \
  struct mr_texel_as<name##2> {                                                                                     \
    MR_INLINE static name##2 of(const mr_texel& texel) { return {convert(texel.bits[0]), convert(texel.bits[1])}; } \
  };                                                                                                                \
  template <>                                                                                                       \
  struct mr_texel_as<name##4> {                                                                                     \
    MR_INLINE static name##4 of(const mr_texel& texel) {                                                            \
      return {convert(texel.bits[0]), convert(texel.bits[1]), convert(texel.bits[2]), convert(texel.bits[3])};      \
    }                                                                                                               \
  };
MR_TEXELS(char, signed char, static_cast<signed char>)
MR_TEXELS(uchar, unsigned char, static_cast<unsigned char>)
MR_TEXELS(short, short, static_cast<short>)
MR_TEXELS(ushort, unsigned short, static_cast<unsigned short>)
MR_TEXELS(int, int, static_cast<int>)
MR_TEXELS(uint, unsigned, static_cast<unsigned>)
MR_TEXELS(float, float, mr_float_of_bits)
#undef MR_TEXELS

#define MR_TEXTURE(name, list, fetched) \
  template <class T>                    \
  inline T name list {                  \
    return mr_texel_as<T>::of(fetched); \
  }
MR_TEXTURE(tex1Dfetch, (cudaTextureObject_t texture, int x), mr_fetched_at(texture, x))
MR_TEXTURE(tex1D, (cudaTextureObject_t texture, float x), mr_fetched<1>(texture, x, 0.0f, 0.0f))
MR_TEXTURE(tex2D, (cudaTextureObject_t texture, float x, float y), mr_fetched<2>(texture, x, y, 0.0f))
MR_TEXTURE(tex3D, (cudaTextureObject_t texture, float x, float y, float z), mr_fetched<3>(texture, x, y, z))
#undef MR_TEXTURE
template <class T>
inline void tex1Dfetch(T* value, cudaTextureObject_t texture, int x) {
  *value = tex1Dfetch<T>(texture, x);
}
template <class T>
inline void tex1D(T* value, cudaTextureObject_t texture, float x) {
  *value = tex1D<T>(texture, x);
}
template <class T>
inline void tex2D(T* value, cudaTextureObject_t texture, float x, float y) {
  *value = tex2D<T>(texture, x, y);
}
template <class T>
inline void tex3D(T* value, cudaTextureObject_t texture, float x, float y, float z) {
  *value = tex3D<T>(texture, x, y, z);
}
