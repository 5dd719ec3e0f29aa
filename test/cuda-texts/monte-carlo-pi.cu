// The area of a quarter disc: states that one kernel sets up, and another one draws from in each launch.
#include <cuda.h>
#include <curand.h>
#include <curand_kernel.h>
#include <stdio.h>
#include <stdlib.h>

#define CUDA_CALL(x) do { if ((x) != cudaSuccess) { \
    printf("Error at %s:%d\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } } while (0)

struct Walker {
  curandState rng;
  unsigned int hits;
};

__device__ __forceinline__ bool is_inside(curandState *state) {
  float x = curand_uniform(state);
  float y = curand_uniform(state);
  return x * x + y * y <= 1.0f;
}

__global__ void setup(Walker *walkers, unsigned long long seed) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  curand_init(seed, id, 0, &walkers[id].rng);
  walkers[id].hits = 0;
}

__global__ void walk(Walker *walkers, unsigned *hits, int steps) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  curandState local = walkers[id].rng;
  for (int i = 0; i < steps; i++) walkers[id].hits += is_inside(&local);
  walkers[id].rng = local;
  hits[id] = walkers[id].hits;
}

int main(int argc, char *argv[]) {
  Walker *walkers;
  unsigned *hits;
  CUDA_CALL(cudaMalloc((void **)&walkers, 256 * sizeof(Walker)));
  CUDA_CALL(cudaMalloc((void **)&hits, 256 * sizeof(unsigned)));
  setup<<<2, 128>>>(walkers, 7ULL);
  walk<<<2, 128>>>(walkers, hits, 1000);
  CUDA_CALL(cudaDeviceSynchronize());
  return 0;
}
