// Kernels of cuda_backend_test, once for a GPU and once for the fake driver, which loads the second as a shared object:
//
//   nvcc -cubin -arch=sm_90 -o cuda_kernels.cubin cuda_kernels.cu
//   g++ -x c++ -std=c++20 -shared -fPIC -I ../../native -o libcuda_kernels.so cuda_kernels.cu
//
//   hold(gate)          runs until the host makes *gate other than zero
//   axpy(y, x, a, n)    y[i] += a * x[i]
//   bounded(out)        out[0] = blockDim.x, in blocks of at most 64 threads that share 1024 bytes
//   narrow(out)         out[0] = blockDim.x, in blocks of at most 16 threads, half a warp
//   meet(count)         count becomes the number of blocks; each block waits for that
//   affine(word, factor, term)  words[i] = factor * words[i] + term, one element a block
//   mix(words, to, one, other)  words[to] = 3 * words[to] + 5 * words[one] + 7 * words[other] + 1
//   shared_sum(out, n)  out[0] = 0 + 1 + ... + n - 1, through n unsigned ints of dynamic shared memory
#if defined(__CUDACC__)

extern "C" __global__ void hold(volatile unsigned* gate) {
  while (*gate == 0) {
  }
}

extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void __launch_bounds__(16) narrow(unsigned* out) {
  out[0] = blockDim.x;
}

extern "C" __global__ void __launch_bounds__(64) bounded(unsigned* out) {
  __shared__ unsigned numbers[256];
  numbers[threadIdx.x] = blockDim.x;
  __syncthreads();
  out[0] = numbers[0];
}

extern "C" __global__ void meet(unsigned* count) {
  atomicAdd(count, 1);
  while (atomicAdd(count, 0) < gridDim.x) {
  }
}

extern "C" __global__ void affine(unsigned* words, unsigned factor, unsigned term) {
  words[blockIdx.x] = factor * words[blockIdx.x] + term;
}

extern "C" __global__ void mix(unsigned* words, unsigned to, unsigned one, unsigned other) {
  words[to] = 3 * words[to] + 5 * words[one] + 7 * words[other] + 1;
}

extern "C" __global__ void shared_sum(unsigned* out, int n) {
  extern __shared__ unsigned numbers[];
  for (int i = 0; i < n; ++i) numbers[i] = i;
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) sum += numbers[i];
  out[0] = sum;
}

#else

#include <sched.h>

#include "cpu/shim/launch_abi.h"

template <typename T>
static T Param(const MrLaunch* launch, int index) {
  return *static_cast<const T*>(launch->params[index]);
}

#define ENTRY(name, ...)                                        \
  extern "C" const unsigned mr_params_##name[] = {__VA_ARGS__}; \
  extern "C" void mr_entry_##name(const MrLaunch* launch, unsigned long long, unsigned long long end)

ENTRY(hold, 1, 8) {
  if (end == 0) return;
  while (__atomic_load_n(Param<unsigned*>(launch, 0), __ATOMIC_ACQUIRE) == 0) sched_yield();
}

ENTRY(axpy, 4, 8, 8, 4, 4) {
  const unsigned long long threads = end * launch->block[0];
  for (unsigned long long i = 0; i < threads && i < static_cast<unsigned long long>(Param<int>(launch, 3)); ++i) {
    Param<float*>(launch, 0)[i] += Param<float>(launch, 2) * Param<const float*>(launch, 1)[i];
  }
}

// The attributes of `bounded` that a real driver reports, for the fake driver.
extern "C" const int mr_max_threads_bounded = 64;
extern "C" const int fake_own_shared_bounded = 1024;
// At most 24 of its warps are resident on a multiprocessor.
extern "C" const int fake_registers_bounded = 84;
ENTRY(bounded, 1, 8) {
  if (end > 0) Param<unsigned*>(launch, 0)[0] = launch->block[0];
}

extern "C" const int mr_max_threads_narrow = 16;
ENTRY(narrow, 1, 8) {
  if (end > 0) Param<unsigned*>(launch, 0)[0] = launch->block[0];
}

ENTRY(meet, 1, 8) {
  auto* count = Param<unsigned*>(launch, 0);
  __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < launch->grid[0]) sched_yield();
}

ENTRY(affine, 3, 8, 4, 4) {
  auto* words = Param<unsigned*>(launch, 0);
  for (unsigned long long i = 0; i < end; ++i) {
    words[i] = Param<unsigned>(launch, 1) * words[i] + Param<unsigned>(launch, 2);
  }
}

ENTRY(mix, 4, 8, 4, 4, 4) {
  auto* words = Param<unsigned*>(launch, 0);
  const unsigned one = words[Param<unsigned>(launch, 2)];
  const unsigned other = words[Param<unsigned>(launch, 3)];
  unsigned& to = words[Param<unsigned>(launch, 1)];
  if (end > 0) to = 3 * to + 5 * one + 7 * other + 1;
}

ENTRY(shared_sum, 2, 8, 4) {
  auto* numbers = reinterpret_cast<unsigned*>(launch->dynamic_shared);
  const int n = Param<int>(launch, 1);
  for (int i = 0; i < n; ++i) numbers[i] = static_cast<unsigned>(i);
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) sum += numbers[i];
  if (end > 0) Param<unsigned*>(launch, 0)[0] = sum;
}

#endif
