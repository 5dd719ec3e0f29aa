// Macros that contain what the CPU device has in another form: shared memory of each kind, the heap and the bounds of a kernel.
#define ALIGNED_SHARED __shared__ alignas(16)
#define TILE(T, name, count) static __shared__ T name[count]
#define SCRATCH(T, name) extern __shared__ T name[]
#define BOUNDED __launch_bounds__(128)
#define TAKE(p, count) p = (int *)malloc((count) * sizeof(int))
#define GIVE_BACK(p) free(p)

template <class T> struct Scratch;
#define SCRATCH_OF(T, name)                                                    \
  template <> struct Scratch<T> {                                              \
    __device__ T &operator[](int i) {                                          \
      SCRATCH(T, name);                                                        \
      return name[i];                                                          \
    }                                                                          \
    __device__ operator T *() {                                                \
      SCRATCH(T, name);                                                        \
      return name;                                                             \
    }                                                                          \
  }
SCRATCH_OF(int, scratch_int);
SCRATCH_OF(float, scratch_float);

// The branch makes a barrier that not every thread passes at the same place.
template <class T> __device__ T sum_of_block(T value) {
  Scratch<T> scratch;
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  T *all = scratch;
  return all[0];
}

__global__ void BOUNDED summed(const float *x, float *y, int n) {
  ALIGNED_SHARED float last[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = sum_of_block(i < n ? x[i] : 0.0f);
  if (threadIdx.x < 4) last[threadIdx.x] = sum + threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = last[3];
}

__global__ void mirrored(const int *x, int *y) {
  TILE(int, tile, 64);
  int *own;
  TAKE(own, 2);
  own[1] = x[threadIdx.x];
  tile[threadIdx.x] = own[1];
  __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x] + __shfl_sync(~0u, own[1], 0);
  GIVE_BACK(own);
}

// Without a wait.
__global__ void doubled(const int *x, int *y) {
  SCRATCH(int, scratch);
  scratch[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = 2 * scratch[threadIdx.x];
}
