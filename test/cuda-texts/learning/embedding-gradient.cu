// The gradient of an embedding: rows of doubles are added atomically, also by devices without such an instruction.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *address, double val) {
  unsigned long long int *address_as_ull = (unsigned long long int *)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif
#endif

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                        \
  for (index_type i = (index_type)blockIdx.x * blockDim.x + threadIdx.x; i < (n);      \
       i += (index_type)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int64_t)

namespace {

__device__ __forceinline__ void gpuAtomicAdd(double *address, double value) { atomicAdd(address, value); }
__device__ __forceinline__ void gpuAtomicAdd(float *address, float value) { atomicAdd(address, value); }
__device__ __forceinline__ void gpuAtomicAdd(int *address, int value) { ::atomicAdd(address, value); }
__device__ __forceinline__ void gpuAtomicAdd(int64_t *address, int64_t value) {
  ::atomicAdd(reinterpret_cast<unsigned long long *>(address), static_cast<unsigned long long>(value));
}

template <typename scalar_t, typename index_t>
__global__ void embedding_backward_kernel(const index_t *__restrict__ indices, const scalar_t *__restrict__ grad_output,
                                          scalar_t *__restrict__ grad_weight, int64_t *__restrict__ counts, int64_t numel, int stride,
                                          int padding_idx) {
  CUDA_KERNEL_LOOP(i, numel * stride) {
    const int64_t feature = i % stride, row = i / stride;
    const index_t word = __ldg(indices + row);
    if (word == static_cast<index_t>(padding_idx)) continue;
    gpuAtomicAdd(grad_weight + word * stride + feature, grad_output[i]);
    if (feature == 0) gpuAtomicAdd(&counts[word], (int64_t)1);
  }
}

}  // namespace

struct cuda_deleter {
  void operator()(void *p) const { cudaFree(p); }
};
template <typename T>
using device_ptr = std::unique_ptr<T[], cuda_deleter>;
template <typename T>
device_ptr<T> device_array(size_t n) {
  T *p = nullptr;
  if (cudaMalloc(&p, n * sizeof(T)) != cudaSuccess) throw std::string("out of memory");
  return device_ptr<T>(p);
}

int main() {
  const int64_t numel = 100, stride = 24, vocabulary = 50;
  auto indices = device_array<int64_t>(numel);
  auto grad = device_array<double>(numel * stride), weight = device_array<double>(vocabulary * stride);
  auto counts = device_array<int64_t>(vocabulary);
  embedding_backward_kernel<double, int64_t><<<8, 128>>>(indices.get(), grad.get(), weight.get(), counts.get(), numel, stride, -1);
  return cudaDeviceSynchronize();
}
