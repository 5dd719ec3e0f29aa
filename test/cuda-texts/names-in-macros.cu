// Macros that name what the library has in headers of its own.
#define COUNT(at) __nv_atomic_fetch_add(at, 1, __NV_ATOMIC_RELAXED)
#define FETCH(values, i) tex1Dfetch<float>(values, i)
#define IS_RIGHT(code) ((code) == cudaSuccess)

__global__ void count_large(cudaTextureObject_t values, int *counts, float least, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && FETCH(values, i) >= least) COUNT(counts);
  if (i == 0 && IS_RIGHT(0)) COUNT(counts + 1);
}
