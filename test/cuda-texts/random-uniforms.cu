// Uniform numbers: floats are one word, doubles of XORWOW two.
#include "curand_kernel.h"

extern "C" __global__ void random_uniforms(float *f, double *d, unsigned long long seed) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  curandState_t x;
  curandStatePhilox4_32_10_t p;
  curandStateMRG32k3a m;
  curand_init(seed, id, 0, &x);
  curand_init(seed, id, 0, &p);
  curand_init(seed, id, 0, &m);
  f[6 * id] = curand_uniform(&x);
  float4 four = curand_uniform4(&p);
  f[6 * id + 1] = four.x;
  f[6 * id + 2] = four.y;
  f[6 * id + 3] = four.z;
  f[6 * id + 4] = four.w;
  f[6 * id + 5] = curand_uniform(&m);
  d[4 * id] = curand_uniform_double(&x);
  double2 two = curand_uniform2_double(&p);
  d[4 * id + 1] = two.x;
  d[4 * id + 2] = two.y;
  d[4 * id + 3] = curand_uniform_double(&p);
}
