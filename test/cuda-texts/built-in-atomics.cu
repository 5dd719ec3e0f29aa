// The atomic functions that CUDA's compilers have built in since CUDA 12.8, with an order and a scope.
#define ADD_TO(at, value) __nv_atomic_add(at, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)

__global__ void built_in(const int *x, int *counts, float *sum, unsigned long long *bits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_atomic_fetch_add(&counts[0], x[i], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_max(&counts[1], x[i], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_fetch_min(&counts[2], x[i], __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM);
  ADD_TO(sum, 0.5f);
  __nv_atomic_fetch_or(bits, 1ull << (i % 64), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  int seen = __nv_atomic_load_n(&counts[3], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  while (!__nv_atomic_compare_exchange_n(&counts[3], &seen, seen + 2, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_RELAXED,
                                         __NV_THREAD_SCOPE_DEVICE)) {
  }
  __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
  if (i == 5) __nv_atomic_store_n(&counts[4], 77, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  if (i == 6) counts[5] = __nv_atomic_exchange_n(&counts[6], 8, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);
}
