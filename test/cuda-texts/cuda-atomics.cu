// Atomic objects of CUDA's C++ library, and its part of the standard library.
#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

template <typename T>
__device__ cuda::std::tuple<T, T> ends(T a, T b) {
  static_assert(cuda::std::is_integral_v<T>, "numbers");
  if (b < a) cuda::std::swap(a, b);
  return cuda::std::make_tuple(a, b);
}

__global__ void atomics(const int *x, int *counts, float *sum, cuda::std::uint32_t *last) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> positive;
  if (threadIdx.x == 0) positive.store(0, cuda::memory_order_relaxed);
  __syncthreads();
  int value = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (value > 0) positive.fetch_add(1, cuda::memory_order_relaxed);
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device> total(counts[0]), most(counts[1]), least(counts[2]), tickets(counts[3]);
  if (threadIdx.x == 0) total += positive.load();
  cuda::std::array<int, 3> own = {value, -value, value / 2};
  auto [low, high] = ends(own[0], own[1]);
  most.fetch_max(high);
  least.fetch_min(low);
  cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
  if (++tickets == (int)(gridDim.x * blockDim.x)) *last = cuda::std::numeric_limits<cuda::std::uint32_t>::max();
  int seen = counts[4];
  while (!cuda::atomic_ref<int>(counts[4]).compare_exchange_weak(seen, seen + 2, cuda::memory_order_acq_rel)) {
  }
}
