// Reductions of a warp by one instruction each (compute capability 8.0), and integer functions.
__global__ void reduce_functions(const int *x, int *out) {
  const unsigned all = 0xffffffff;
  const int v = x[threadIdx.x];
  const int results[] = {__reduce_add_sync(all, v),
                         __reduce_min_sync(all, v),
                         __reduce_max_sync(all, v),
                         (int)__reduce_and_sync(all, (unsigned)v),
                         (int)__reduce_or_sync(all, (unsigned)v),
                         (int)__reduce_xor_sync(all, (unsigned)v)};
  for (int n = 0; n < 6; ++n)
    if (threadIdx.x == n) out[n] = results[n];
}
