#include <algorithm>
#include <limits>
#include <utility>

extern "C" __global__ void std_values(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::pair<int, int> best(std::numeric_limits<int>::min(), -1);
  for (int k = 0; k <= i; k++) {
    if (x[k] > best.first) best = std::make_pair(x[k], k);
  }
  int low = 0, high = best.second;
  std::swap(low, high);
  y[i] = std::abs(best.first) + 1000 * low + high;
}
