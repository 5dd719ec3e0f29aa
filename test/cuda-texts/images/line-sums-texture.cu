// Sums along the rows of an image in a texture: warps sample it, and exchange what they have read.
#include <cuda.h>
#include <memory.h>
#include <pthread.h>
#include <stdlib.h>

typedef pthread_t Worker;
struct Shared {
  pthread_mutex_t mutex;
  CUdeviceptr sums;
};

__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}

// A block of two warps for each row.
extern "C" __global__ void line_sums(CUtexObject image, float *sums, int width) {
  __shared__ float parts[2];
  float sum = 0.0f;
  for (int x = threadIdx.x; x < width; x += blockDim.x) sum += tex2D<float>(image, x + 0.5f, blockIdx.x + 0.5f);
  sum = warp_sum(sum);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0] + parts[1];
}

static void *work(void *given) {
  Shared *shared = (Shared *)given;
  pthread_mutex_lock(&shared->mutex);
  cuMemFree(shared->sums);
  pthread_mutex_unlock(&shared->mutex);
  return NULL;
}

int main() {
  Shared shared;
  memset(&shared, 0, sizeof(shared));
  Worker worker;
  if (cuInit(0) != CUDA_SUCCESS || cuMemAlloc(&shared.sums, 1024) != CUDA_SUCCESS) return EXIT_FAILURE;
  pthread_create(&worker, NULL, work, &shared);
  pthread_join(worker, NULL);
  return EXIT_SUCCESS;
}
