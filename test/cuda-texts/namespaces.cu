#include <cstdint>

namespace physics {
namespace detail {
__device__ float damped(float v) { return v * 0.5f; }
}  // namespace detail

struct Particle {
  float at, speed;
};

__global__ void step(Particle *p, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p[i].speed = detail::damped(p[i].speed);
  p[i].at += p[i].speed * dt;
}
}  // namespace physics

namespace graphics::image {
constexpr int THREADS = 128;

__launch_bounds__(graphics::image::THREADS) __global__ void step(uint8_t *pixels, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) pixels[i] = 255 - pixels[i];
}
}  // namespace graphics::image
