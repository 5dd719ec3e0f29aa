// Macros of a larger project: attributes before declarations, names that macros join, and headers that only other kernels need.
#include <bits/stdc++.h>
#include <cuda_fp8.h>

#define API extern
#define FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))
#define NORETURN __attribute__((noreturn))
#define CHECKED(x) do { if (!(x)) stop(__FILE__, __LINE__, "%s", #x); } while (0)
#define LOCALS(prefix, from) const int prefix##0 = (from)[0]; const int prefix##1 = (from)[1];

NORETURN FORMAT(3, 4) API void stop(const char* file, int line, const char* text, ...);
FORMAT(2, 3)
API char* name_of(char* name, const char* text, ...);
API int count_of(int number);

template <typename T>
struct pool {
  T* first = nullptr;
  void reset(int n) { CHECKED(n >= 0); first = nullptr; }
};

/// Its name ends as those that LOCALS makes.
__device__ float quarter1(unsigned char bits) {
  __nv_fp8_e4m3 number;
  number.__x = bits;
  return float(number);
}

__global__ void narrow(const unsigned char* from, float* to) {
  to[threadIdx.x] = quarter1(from[threadIdx.x]);
}

__global__ void sums(const int* pairs, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  LOCALS(pair, pairs + 2 * i);
  out[i] = pair0 + 10 * pair1;
}

int main() {
  pool<int> numbers;
  numbers.reset(count_of(3));
  sums<<<1, 32>>>(nullptr, nullptr, 0);
  std::vector<int> left(10);
  return static_cast<int>(left.size());
}
