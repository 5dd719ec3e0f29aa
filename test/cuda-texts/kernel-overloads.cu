// Kernels of one name that differ in their parameters, with prototypes, bounds of their own, and one that waits.
typedef int counter;

__global__ void scale(float* x);
__global__ void scale(double*);
__global__ void __launch_bounds__(128) scale(float* x) { x[threadIdx.x] *= 2.0f; }
__global__ void __launch_bounds__(256) scale(double* x) { x[threadIdx.x] *= 3.0; }
__global__ void scale(counter* x, int by) { x[threadIdx.x] *= by; }
namespace units {
__global__ void scale(float* x) { x[threadIdx.x] *= 10.0f; }
}

extern "C" __global__ void summed(double* x) {
  __shared__ double all[32];
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < blockDim.x; i++) sum += all[i];
  x[threadIdx.x] = sum;
}
__global__ void summed(int* x) {
  int sum = 0;
  for (int i = 0; i < blockDim.x; i++) sum += __shfl_sync(0xfu, x[threadIdx.x], i);
  x[threadIdx.x] = sum;
}
