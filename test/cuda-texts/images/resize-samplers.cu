// Resizing with the interpolation as a constant of the template, for pixels with any number of channels.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

namespace imgproc::detail {

enum class Interpolation { Nearest, Bilinear, Area };

template <int Channels>
struct pixel_of;
template <>
struct pixel_of<1> { using type = unsigned char; };
template <>
struct pixel_of<4> { using type = uchar4; };
template <int Channels>
using pixel_t = typename pixel_of<Channels>::type;

struct Image {
  const void *data;
  int2 size;
  int pitch;
};

template <int Channels>
[[nodiscard]] __device__ __forceinline__ auto fetch(const Image &image, int x, int y) -> float4 {
  x = max(0, min(x, image.size.x - 1)), y = max(0, min(y, image.size.y - 1));
  const auto *row = reinterpret_cast<const pixel_t<Channels> *>(static_cast<const char *>(image.data) + y * static_cast<ptrdiff_t>(image.pitch));
  if constexpr (std::is_same_v<pixel_t<Channels>, uchar4>) {
    const uchar4 p = __ldg(row + x);
    return make_float4(p.x, p.y, p.z, p.w);
  } else {
    return make_float4(__ldg(row + x), 0.0f, 0.0f, 0.0f);
  }
}

__device__ __forceinline__ float4 lerp(const float4 a, const float4 b, const float t) {
  return make_float4(fmaf(t, b.x - a.x, a.x), fmaf(t, b.y - a.y, a.y), fmaf(t, b.z - a.z, a.z), fmaf(t, b.w - a.w, a.w));
}

template <Interpolation mode, int Channels>
[[gnu::always_inline]] __device__ inline float4 sample(const Image &src, float2 scale, int x, int y) {
  if constexpr (mode == Interpolation::Nearest) {
    return fetch<Channels>(src, __float2int_rd((x + 0.5f) * scale.x), __float2int_rd((y + 0.5f) * scale.y));
  } else if constexpr (mode == Interpolation::Bilinear) {
    const float fx = (x + 0.5f) * scale.x - 0.5f, fy = (y + 0.5f) * scale.y - 0.5f;
    const int ix = __float2int_rd(fx), iy = __float2int_rd(fy);
    const float4 top = lerp(fetch<Channels>(src, ix, iy), fetch<Channels>(src, ix + 1, iy), fx - ix);
    const float4 bottom = lerp(fetch<Channels>(src, ix, iy + 1), fetch<Channels>(src, ix + 1, iy + 1), fx - ix);
    return lerp(top, bottom, fy - iy);
  } else {
    static_assert(mode == Interpolation::Area, "unknown interpolation");
    const int x0 = __float2int_rd(x * scale.x), x1 = __float2int_ru((x + 1) * scale.x);
    const int y0 = __float2int_rd(y * scale.y), y1 = __float2int_ru((y + 1) * scale.y);
    float4 sum{};
    float weights = 0;
    for (int v = y0; v < y1; ++v)
      for (int u = x0; u < x1; ++u) {
        const float w = (fminf(u + 1, (x + 1) * scale.x) - fmaxf(u, x * scale.x)) * (fminf(v + 1, (y + 1) * scale.y) - fmaxf(v, y * scale.y));
        const float4 p = fetch<Channels>(src, u, v);
        sum.x += w * p.x, sum.y += w * p.y, sum.z += w * p.z, sum.w += w * p.w;
        weights += w;
      }
    return lerp(float4{}, sum, 1.0f / weights);
  }
}

template <Interpolation mode, int Channels = 4>
__global__ __launch_bounds__(128) void resize(const __grid_constant__ Image src, float *__restrict__ dst, const int2 size) {
  const uint3 at{blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, 0};
  if (at.x >= size.x || at.y >= size.y) [[unlikely]] return;
  const float2 scale{float(src.size.x) / size.x, float(src.size.y) / size.y};
  const float4 value = sample<mode, Channels>(src, scale, at.x, at.y);
  if constexpr (Channels == 4) *(reinterpret_cast<float4 *>(dst) + at.y * size.x + at.x) = value;
  else dst[at.y * size.x + at.x] = value.x;
}

std::optional<Interpolation> parse(std::string_view name) {
  using namespace std::literals;
  if (name == "nearest"sv) return Interpolation::Nearest;
  if (name == "bilinear"sv) return Interpolation::Bilinear;
  return name == "area"sv ? std::make_optional(Interpolation::Area) : std::nullopt;
}

template <Interpolation... modes>
void run(Interpolation mode, const Image &src, float *dst, int2 size) {
  const dim3 block(32, 4), grid((size.x + 31) / 32, (size.y + 3) / 4);
  ((mode == modes ? resize<modes><<<grid, block>>>(src, dst, size) : void()), ...);
}
template void run<Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Area>(Interpolation, const Image &, float *, int2);

}  // namespace imgproc::detail
