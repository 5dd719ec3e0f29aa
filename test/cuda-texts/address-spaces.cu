// Which memory a pointer points into, and addresses in shared memory as numbers.
__constant__ int weights[4] = {1, 2, 3, 4};
namespace tables {
__constant__ float scale = 2.0f;
}
__device__ int counters[8];
__shared__ int of_block[2];

// One bit for each space.
__device__ __noinline__ int spaces(const void *p) {
  return (__isShared(p) ? 1 : 0) + (__isGlobal(p) ? 2 : 0) + (__isConstant(p) ? 4 : 0) + (__isLocal(p) ? 8 : 0);
}

__global__ void told(const float *x, int *y) {
  extern __shared__ float dynamic[];
  __shared__ double fixed[40];
  int own[8];
  const int t = threadIdx.x;
  for (int i = 0; i < 8; i++) own[i] = t + i;
  dynamic[t] = x[t];
  fixed[t] = x[t];
  of_block[t % 2] = t;
  counters[t % 8] = weights[t % 4];
  const void *all[] = {&dynamic[t], &fixed[t], &of_block[t % 2], x + t, &counters[t % 8], &weights[t % 4], &tables::scale, &own[t % 8]};
  int packed = 0;
  for (int i = 7; i >= 0; i--) packed = packed * 10 + spaces(all[i]);
  y[t] = packed;
}

// The same in threads that wait for each other.
__global__ void told_waiting(const float *x, int *y) {
  __shared__ float fixed[32];
  const int t = threadIdx.x;
  int own[4] = {t, t + 1, t + 2, t + 3};
  fixed[t] = x[t];
  __syncthreads();
  int mine = __shfl_xor_sync(0xffffffffu, own[t % 4], 1);
  y[t] = spaces(&fixed[31 - t]) + 10 * spaces(&own[mine % 4]) + 100 * spaces(y) + 1000 * spaces(&weights[1]);
}

// Numbers of 32 bits, with the distances and alignments of the pointers.
__global__ void numbers(const float *x, float *y, int *bits) {
  extern __shared__ float dynamic[];
  __shared__ __align__(128) float fixed[32];
  const int t = threadIdx.x;
  const unsigned in_fixed = (unsigned)__cvta_generic_to_shared(&fixed[t]);
  const unsigned in_dynamic = (unsigned)__cvta_generic_to_shared(dynamic + t);
  *(float *)__cvta_shared_to_generic(in_fixed) = x[t];
  *(float *)__cvta_shared_to_generic(in_dynamic) = 2 * x[t];
  __syncthreads();
  y[t] = fixed[31 - t] + dynamic[31 - t];
  const unsigned start = (unsigned)__cvta_generic_to_shared(fixed);
  const float *other = (const float *)__cvta_global_to_generic(__cvta_generic_to_global(x + t));
  bits[t] = (in_fixed - start == 4u * t ? 1 : 0) + (start % 128 == 0 ? 2 : 0) + (in_fixed != in_dynamic ? 4 : 0) + (other == x + t ? 8 : 0);
}
