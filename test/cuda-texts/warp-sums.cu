#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

__device__ uint32_t warp_sum(cg::thread_block_tile<32> warp, uint32_t v) {
  for (int offset = warp.size() / 2; offset > 0; offset /= 2) v += warp.shfl_down(v, offset);
  return v;
}

extern "C" __global__ void warp_sums(const uint32_t *x, uint32_t *y, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t sum = warp_sum(warp, i < n ? x[i] : 0u);
  if (warp.thread_rank() == 0) atomicAdd(y, sum);
}
