#define DEFINE_KERNEL(name, T, expression)                    \
  __global__ void name(const T *x, T *y, int n) {             \
    int i = blockIdx.x * blockDim.x + threadIdx.x;            \
    if (i < n) { T v = x[i]; y[i] = expression; }             \
  }

DEFINE_KERNEL(cube, float, v *v *v)
DEFINE_KERNEL(half_of, int, v / 2)

__global__ void zero(int *y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 0;
}
