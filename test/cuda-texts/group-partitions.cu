// Groups by label and by a predicate, scans of groups, and groups of a size that is known at run time.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Adds each lane's value to the bin of its label, once for each group of equal labels.
__global__ void labels(const int *label, const int *value, int *bins, int *ranks) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int i = block.thread_rank();
  auto same = cg::labeled_partition(warp, label[i]);
  int sum = cg::reduce(same, value[i], cg::plus<int>());
  if (same.thread_rank() == 0) atomicAdd(&bins[label[i]], sum);
  auto half = cg::binary_partition(warp, value[i] > 0);
  ranks[i] = half.thread_rank() * 100 + half.size();
}

__global__ void scans(const int *x, int *sums, int *before, int *largest) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int i = block.thread_rank();
  sums[i] = cg::inclusive_scan(tile, x[i]);
  before[i] = cg::exclusive_scan(tile, x[i], cg::plus<int>());
  largest[i] = cg::inclusive_scan(tile, x[i], [](int a, int b) { return a > b ? a : b; });
}

__device__ int sum_reduce(cg::thread_group g, int *temp, int value) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = value;
    g.sync();
    if (lane < i) value += temp[lane + i];
    g.sync();
  }
  return value;
}

__global__ void group_sums(const int *x, int *of_block, int *of_tiles, int tile_size) {
  __shared__ int temp[128];
  auto block = cg::this_thread_block();
  int i = block.thread_rank();
  int sum = sum_reduce(block, temp, x[i]);
  if (i == 0) *of_block = sum;
  block.sync();
  cg::thread_group tile = cg::tiled_partition(block, tile_size);
  sum = sum_reduce(tile, &temp[i / tile_size * tile_size], x[i]);
  if (tile.thread_rank() == 0) of_tiles[i / tile_size] = sum;
}
