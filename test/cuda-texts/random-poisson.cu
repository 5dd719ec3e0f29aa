// Poisson numbers: a product of uniform ones for a small lambda.
#include <curand_kernel.h>

__global__ void random_poisson(unsigned *few, unsigned *sums, unsigned long long seed) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state;
  curand_init(seed, id, 0, &state);
  few[id] = curand_poisson(&state, 3.5);
  unsigned sum = 0;
  for (int k = 0; k < 64; k++) sum += curand_poisson(&state, 500.0);
  atomicAdd(&sums[0], sum);
  sum = 0;
  for (int k = 0; k < 64; k++) sum += curand_poisson(&state, 10000.0);
  atomicAdd(&sums[1], sum);
}
