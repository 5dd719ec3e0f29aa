// The words of three generators, one sequence for each thread.
#include <cstdio>
#include <cuda_runtime.h>
#include <curand_kernel.h>

#define PER_THREAD 6

template <typename State>
__device__ void draw(State *state, unsigned int *out) {
  for (int k = 0; k < PER_THREAD; k++) out[k] = curand(state);
}

__global__ void random_words(unsigned int *x, unsigned int *p, unsigned int *m, unsigned long long seed) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  curandState xorwow;
  curandStatePhilox4_32_10_t philox;
  curandStateMRG32k3a_t mrg;
  curand_init(seed, id * 1000ULL, 3 * id, &xorwow);
  curand_init(seed, id, 0, &philox);
  curand_init(seed, id, 5ULL << id, &mrg);
  draw(&xorwow, x + id * PER_THREAD);
  draw(&philox, p + id * PER_THREAD);
  draw(&mrg, m + id * PER_THREAD);
}

int main() {
  unsigned int *x, *p, *m;
  cudaMalloc(&x, 256 * PER_THREAD * sizeof(unsigned int));
  cudaMalloc(&p, 256 * PER_THREAD * sizeof(unsigned int));
  cudaMalloc(&m, 256 * PER_THREAD * sizeof(unsigned int));
  random_words<<<4, 64>>>(x, p, m, 1234ULL);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
