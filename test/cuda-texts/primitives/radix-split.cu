// One block sorts by the bits of its keys, from the lowest on.
#include <stdio.h>
#define N 256

template <class T>
__device__ T plus_scan(T *x) {
  T i = threadIdx.x, n = blockDim.x;
  for (T offset = 1; offset < n; offset *= 2) {
    T t = 0;
    if (i >= offset) t = x[i - offset];
    __syncthreads();
    if (i >= offset) x[i] = t + x[i];
    __syncthreads();
  }
  return x[i];
}

__device__ void partition_by_bit(unsigned int *values, unsigned int bit) {
  unsigned int i = threadIdx.x, size = blockDim.x;
  unsigned int x_i = values[i], p_i = (x_i >> bit) & 1;
  values[i] = p_i;
  __syncthreads();
  unsigned int t_before = plus_scan(values);
  unsigned int t_total = values[size - 1];
  unsigned int f_total = size - t_total;
  __syncthreads();
  if (p_i)
    values[t_before - 1 + f_total] = x_i;
  else
    values[i - t_before] = x_i;
}

extern "C" __global__ void radix_sort(unsigned int *values) {
  for (unsigned int bit = 0; bit < 32; ++bit) {
    partition_by_bit(values, bit);
    __syncthreads();
  }
}
