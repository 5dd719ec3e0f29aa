#include <cstdint>
#include <cmath>
#ifndef EPS
#define EPS 1e-6f
#endif

struct __align__(16) Body {
  float3 at;
  float mass;
};
struct Vec {
  float x, y, z;
  __host__ __device__ Vec(float3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ float dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
};
enum class Mode : uint8_t { near, far };

extern "C" __global__ void structs(const Body *bodies, float *pull, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) {
    Vec v(make_float3(bodies[k].at.x - bodies[i].at.x, bodies[k].at.y - bodies[i].at.y, bodies[k].at.z - bodies[i].at.z));
    float d2 = v.dot(v) + EPS;
    Mode mode = d2 < 4.0f ? Mode::near : Mode::far;
    sum += mode == Mode::near ? bodies[k].mass : 0.0f;
  }
  pull[i] = sum;
}
