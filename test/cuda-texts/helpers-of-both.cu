#include <cmath>
#include <cstdio>
#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif

HD inline float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }
// No word says so, but a kernel calls it.
float shifted(float v) { return sigmoid(v) - 0.5f; }
constexpr int rounds() { return 3; }

// Only the host does.
void reference(const float *x, float *y, int n) {
  for (int i = 0; i < n; i++) y[i] = shifted(x[i]);
}
__host__ bool same(float a, float b) { return fabs(a - b) < 1e-5; }

__global__ void activate(const float *x, float *y, int n) {
  static_assert(rounds() == 3, "");
  int i = threadIdx.x;
  if (i < n) y[i] = shifted(x[i]);
}

int main() {
  float x[4] = {1, 2, 3, 4}, y[4];
  reference(x, y, 4);
  if (!same(y[0], 0.2310586f)) puts("differs");
}
