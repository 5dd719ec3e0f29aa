// Barriers of the C++ library: threads arrive, do something else, and wait; producers and consumers of a buffer.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/std/utility>

using barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void arrive_then_wait(const int *x, int *y, int rounds) {
  __shared__ barrier bar;
  __shared__ int shared[2][128];
  auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  int i = threadIdx.x, n = blockDim.x, value = x[blockIdx.x * n + i];
  for (int r = 0; r < rounds; r++) {
    shared[r & 1][i] = value;
    barrier::arrival_token token = bar.arrive();
    int own = value * 2;
    bar.wait(cuda::std::move(token));
    value = own + shared[r & 1][(i + 1) % n];
  }
  bar.arrive_and_wait();
  y[blockIdx.x * n + i] = value;
}

__device__ void producer(barrier ready[], barrier filled[], float *buffer, const float *in, int n, int length) {
  for (int i = 0; i < n / length; ++i) {
    ready[i % 2].arrive_and_wait();
    for (int k = threadIdx.x; k < length; k += 32) buffer[(i % 2) * length + k] = in[i * length + k] + 1.0f;
    barrier::arrival_token token = filled[i % 2].arrive();
  }
}
__device__ void consumer(barrier ready[], barrier filled[], float *buffer, float *out, int n, int length) {
  barrier::arrival_token token1 = ready[0].arrive();
  barrier::arrival_token token2 = ready[1].arrive();
  for (int i = 0; i < n / length; ++i) {
    filled[i % 2].arrive_and_wait();
    for (int k = threadIdx.x - 32; k < length; k += blockDim.x - 32) out[i * length + k] = buffer[(i % 2) * length + k] * 2.0f;
    barrier::arrival_token token = ready[i % 2].arrive();
  }
}

// The first warp fills two halves of a buffer, which the others empty.
__global__ void producer_consumer(const float *in, float *out, int n, int length) {
  extern __shared__ float buffer[];
  __shared__ barrier bar[4];
  auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() < 4) init(bar + block.thread_rank(), block.size());
  block.sync();
  if (block.thread_rank() < 32)
    producer(bar, bar + 2, buffer, in, n, length);
  else
    consumer(bar, bar + 2, buffer, out, n, length);
}
