// Normal and log-normal numbers come in pairs, of which the state keeps the second one.
#include <curand_kernel.h>

__global__ void random_normals(float *f, double *d, unsigned long long seed) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  curandState x;
  curand_init(seed, id, 0, &x);
  curandStatePhilox4_32_10_t p;
  curand_init(seed, id, 0, &p);
  f[0 * 64 + id] = curand_normal(&x);
  f[1 * 64 + id] = curand_normal(&x);
  float2 pair = curand_normal2(&x);
  f[2 * 64 + id] = pair.x;
  f[3 * 64 + id] = pair.y;
  f[4 * 64 + id] = logf(curand_log_normal(&x, 0.5f, 0.25f));
  f[5 * 64 + id] = logf(curand_log_normal(&x, 0.5f, 0.25f));
  float4 four = curand_normal4(&p);
  f[6 * 64 + id] = four.x + four.y;
  f[7 * 64 + id] = four.z + four.w;
  d[0 * 64 + id] = curand_normal_double(&p);
  d[1 * 64 + id] = curand_normal_double(&p);
}
