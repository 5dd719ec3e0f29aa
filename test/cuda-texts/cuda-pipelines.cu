// Asynchronous copies to shared memory: of a group, in a pipeline of two stages, and by primitives.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

__global__ void group_copies(const int *in, int *out, int batches) {
  __shared__ int tile[64];
  auto block = cg::this_thread_block();
  for (int b = 0; b < batches; b++) {
    cg::memcpy_async(block, tile, in + b * 64, sizeof(int) * 64);
    cg::wait(block);
    out[b * 64 + threadIdx.x] = tile[63 - threadIdx.x];
    block.sync();
  }
}

__global__ void two_stages(const int *in, int *out, int batches) {
  constexpr auto scope = cuda::thread_scope_block;
  constexpr unsigned stages = 2;
  __shared__ int shared[stages][64];
  __shared__ cuda::pipeline_shared_state<scope, stages> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int compute = 0, fetch = 0; compute < batches; ++compute) {
    for (; fetch < batches && fetch < compute + (int)stages; ++fetch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, shared[fetch % stages], in + fetch * 64, sizeof(int) * 64, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    out[compute * 64 + threadIdx.x] = 3 * shared[compute % stages][63 - threadIdx.x];
    pipeline.consumer_release();
  }
}

__global__ void primitives(const int4 *in, int4 *out) {
  __shared__ int4 tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
