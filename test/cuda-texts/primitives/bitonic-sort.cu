// Bitonic sort of keys and values in shared memory.
typedef unsigned int uint;
#define SHARED_SIZE 512U

inline __device__ void comparator(uint &keyA, uint &valA, uint &keyB, uint &valB, uint dir) {
  uint t;
  if ((keyA > keyB) == dir) {
    t = keyA;
    keyA = keyB;
    keyB = t;
    t = valA;
    valA = valB;
    valB = t;
  }
}

__global__ void bitonic_sort_shared(uint *keys, uint *values, uint dir) {
  __shared__ uint s_key[SHARED_SIZE];
  __shared__ uint s_val[SHARED_SIZE];
  keys += blockIdx.x * SHARED_SIZE + threadIdx.x;
  values += blockIdx.x * SHARED_SIZE + threadIdx.x;
  s_key[threadIdx.x] = keys[0];
  s_val[threadIdx.x] = values[0];
  s_key[threadIdx.x + SHARED_SIZE / 2] = keys[SHARED_SIZE / 2];
  s_val[threadIdx.x + SHARED_SIZE / 2] = values[SHARED_SIZE / 2];
  for (uint size = 2; size < SHARED_SIZE; size <<= 1) {
    uint ddd = dir ^ ((threadIdx.x & (size / 2)) != 0);
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      comparator(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], ddd);
    }
  }
  for (uint stride = SHARED_SIZE / 2; stride > 0; stride >>= 1) {
    __syncthreads();
    uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    comparator(s_key[pos], s_val[pos], s_key[pos + stride], s_val[pos + stride], dir);
  }
  __syncthreads();
  keys[0] = s_key[threadIdx.x];
  values[0] = s_val[threadIdx.x];
  keys[SHARED_SIZE / 2] = s_key[threadIdx.x + SHARED_SIZE / 2];
  values[SHARED_SIZE / 2] = s_val[threadIdx.x + SHARED_SIZE / 2];
}
