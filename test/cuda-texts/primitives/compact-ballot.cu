// Stream compaction: a warp counts its elements with a ballot and takes their places with one atomic function.
#include <cuda_runtime.h>
#define FULL_MASK 0xffffffffu

__device__ __forceinline__ unsigned lane_id() { return threadIdx.x & (warpSize - 1); }

__global__ void compact(const int *in, int *out, int *count, int n, int threshold) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool keep = i < n && in[i] >= threshold;
  const unsigned ballot = __ballot_sync(FULL_MASK, keep);
  int base = 0;
  const int leader = __ffs(ballot) - 1;
  if (ballot && lane_id() == (unsigned)leader) base = atomicAdd(count, __popc(ballot));
  base = __shfl_sync(FULL_MASK, base, ballot ? leader : 0);
  if (keep) out[base + __popc(ballot & ((1u << lane_id()) - 1))] = in[i];
}
