// All threads that are active here add with one atomic function.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ int atomic_agg_inc(int *counter) {
  cg::coalesced_group active = cg::coalesced_threads();
  int base = 0;
  if (active.thread_rank() == 0) base = atomicAdd(counter, active.size());
  return active.shfl(base, 0) + active.thread_rank();
}

__global__ void filter_positive(int *dst, int *count, const int *src, int n) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
    if (src[i] > 0) dst[atomic_agg_inc(count)] = src[i];
}
