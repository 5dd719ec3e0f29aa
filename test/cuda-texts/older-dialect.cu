// Idioms of programs that were written for older compilers: C++14, explicit instantiations (also by macros), one array for all dynamic shared
// memory of a file, barriers for the compiler alone, and the free functions of cooperative groups.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern __shared__ float array[];

template <typename T> __global__ void twice(T* y) { y[threadIdx.x] *= 2; }
#define INSTANTIATE(T) template __global__ void twice<T>(T * y);
#define FOR_ALL(F) \
  F(float)         \
  F(double)
FOR_ALL(INSTANTIATE)
template <typename T> __device__ T larger(T a, T b) { return a < b ? b : a; }
template __device__ float larger<float>(float, float);
template __global__ void twice<int>(int*);

__device__ float of(const float* x) { return x[0]; }
__device__ float of(const float3* x) { return x[0].x + x[0].y; }

__global__ void older(const float* x, float* y) {
  short* halves = (short*)array;
  float* values = (float*)&halves[128];
  char* bytes = reinterpret_cast<char*>(array);
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const int i = cg::thread_rank(block);
  halves[i] = (short)i;
  values[i] = x[i];
  asm volatile("" ::: "memory");
  cg::sync(block);
  const int other = cg::group_size(block) - 1 - i;
  y[i] = larger(values[other], (float)halves[other]) + cg::thread_rank(tile) * 100 + of(x) * 0 + of((const float3*)x) * 0;
  if (bytes[0] != 0) y[i] = -1;
  if ((size_t)array % 4 != 0) y[i] = -2;
}
