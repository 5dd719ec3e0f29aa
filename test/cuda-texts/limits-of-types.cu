#include <limits>

template <typename T>
__device__ double span() {
  return (double)std::numeric_limits<T>::max() - (double)std::numeric_limits<T>::lowest();
}

extern "C" __global__ void limits_of_types(double *y) {
  y[0] = span<char>();
  y[1] = span<unsigned short>();
  y[2] = span<int>();
  y[3] = span<unsigned>();
  y[4] = std::numeric_limits<float>::epsilon();
  y[5] = std::numeric_limits<double>::infinity();
  y[6] = std::numeric_limits<float>::min();
  y[7] = std::numeric_limits<long long>::digits + std::numeric_limits<bool>::max();
  y[8] = std::numeric_limits<float>::quiet_NaN() != std::numeric_limits<float>::quiet_NaN();
}
