#include <array>
#include <tuple>

__device__ std::tuple<int, float> parts(float v) {
  int whole = (int)v;
  return std::make_tuple(whole, v - whole);
}

extern "C" __global__ void tuples_and_arrays(const float *x, float *y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int whole;
  float rest;
  std::tie(whole, rest) = parts(x[i]);
  auto [again, same] = parts(x[i]);
  std::array<float, 3> weights = {1.0f, 10.0f, 100.0f};
  float sum = 0;
  for (float w : weights) sum += w;
  y[i] = whole * weights[1] + rest + (again == whole && same == rest ? sum : 0) + std::get<0>(parts(x[i])) + weights.size();
}
