#include <type_traits>

template <typename T, typename std::enable_if<std::is_integral<T>::value, int>::type = 0>
__device__ T half_of(T v) { return v >> 1; }
template <typename T, typename = std::enable_if_t<std::is_floating_point_v<T>>>
__device__ T half_of(T v) { return v * T(0.5); }

template <typename T>
struct Wide { using type = typename std::conditional<sizeof(T) < 8, double, T>::type; };

extern "C" __global__ void type_traits(const int *x, const float *f, double *y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  static_assert(std::is_same<Wide<float>::type, double>::value, "a float is widened");
  typename Wide<std::decay_t<decltype(f[i])>>::type wide = half_of(f[i]);
  std::make_unsigned_t<int> bits = x[i];
  y[i] = wide + half_of(x[i]) + (bits >> 31);
}
