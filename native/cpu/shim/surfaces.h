// Surface functions. Included if a source names textures or surfaces. As in CUDA, x is in bytes, y and z are in
// elements, and values are stored without conversion.
#pragma once

#include "launch_abi.h"
#include "vectors.h"

typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };

MR_INLINE int mr_within(int at, int most) {
  return at < 0 ? 0 : at > most ? most : at;
}

/// Where a value of this size is; null for one outside that is not accessed.
inline char* mr_surface_at(cudaSurfaceObject_t object, int x, int y, int z, int size, cudaSurfaceBoundaryMode mode) {
  const MrTexture& surface = *reinterpret_cast<const MrTexture*>(object);
  const int last = surface.width * surface.element_bytes - size;
  const bool is_inside = x >= 0 && x <= last && y >= 0 && y < surface.height && z >= 0 && z < surface.depth;
  if (!is_inside) {
    if (mode == cudaBoundaryModeTrap) __builtin_trap();
    if (mode == cudaBoundaryModeZero || last < 0) return nullptr;
    x = mr_within(x, last);
    y = mr_within(y, surface.height - 1);
    z = mr_within(z, surface.depth - 1);
  }
  return surface.data + static_cast<unsigned long long>(z) * surface.layer +
         static_cast<unsigned long long>(y) * surface.pitch + static_cast<unsigned long long>(x);
}

template <class T>
inline T mr_surface_read(cudaSurfaceObject_t surface, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  T value{};
  if (const char* const at = mr_surface_at(surface, x, y, z, sizeof(T), mode)) __builtin_memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
inline void mr_surface_write(const T& value, cudaSurfaceObject_t surface, int x, int y, int z,
                             cudaSurfaceBoundaryMode mode) {
  if (char* const at = mr_surface_at(surface, x, y, z, sizeof(T), mode)) __builtin_memcpy(at, &value, sizeof(T));
}

#define MR_LIST(...) __VA_ARGS__
#define MR_SURFACE(dimensions, axes, places)                                                 \
  template <class T>                                                                         \
  inline T surf##dimensions##read(cudaSurfaceObject_t surface, axes,                         \
                                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {     \
    return mr_surface_read<T>(surface, places, mode);                                        \
  }                                                                                          \
  template <class T>                                                                         \
  inline void surf##dimensions##read(T* value, cudaSurfaceObject_t surface, axes,            \
                                     cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {  \
    *value = mr_surface_read<T>(surface, places, mode);                                      \
  }                                                                                          \
  template <class T>                                                                         \
  inline void surf##dimensions##write(T value, cudaSurfaceObject_t surface, axes,            \
                                      cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
    mr_surface_write<T>(value, surface, places, mode);                                       \
  }
MR_SURFACE(1D, MR_LIST(int x), MR_LIST(x, 0, 0))
MR_SURFACE(2D, MR_LIST(int x, int y), MR_LIST(x, y, 0))
MR_SURFACE(3D, MR_LIST(int x, int y, int z), MR_LIST(x, y, z))
#undef MR_SURFACE
#undef MR_LIST
