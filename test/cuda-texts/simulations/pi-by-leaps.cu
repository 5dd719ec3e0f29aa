// The area under a curve, several points a thread, into one double.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
#else
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

__device__ inline double curve(double x) { return 4.0 / (1.0 + x * x); }

__global__ void integrate(double *pi, long steps) {
  const double width = 1.0 / steps;
  double sum = 0.0;
  for (long i = threadIdx.x; i < steps; i += blockDim.x) sum += curve((i + 0.5) * width);
  atomicAdd(pi, sum * width);
}
