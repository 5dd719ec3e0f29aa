#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

extern "C" __global__ void cpp_headers(const double *x, int64_t *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::int64_t value = static_cast<std::int64_t>(std::floor(x[i]));
  if (std::isnan(x[i])) value = LLONG_MIN;
  else if (std::isinf(x[i])) value = x[i] > 0 ? INT64_MAX : -INT64_MAX;
  out[i] = value;
}
