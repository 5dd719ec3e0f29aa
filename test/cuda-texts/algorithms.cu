#include <algorithm>
#include <functional>
#include <numeric>

extern "C" __global__ void algorithms(const int *x, int *y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int four[4];
  std::copy(x + 4 * i, x + 4 * i + 4, four);
  std::sort(four, four + 4);
  const int sum = std::accumulate(four, four + 4, 0, std::plus<int>());
  const int above = std::upper_bound(four, four + 4, 5) - four;
  std::greater<int> greater;
  y[i] = sum * 1000 + above * 100 + four[0] + std::clamp(four[3], 2, 8) * 10 + (greater(four[3], four[0]) ? 0 : 7);
}
