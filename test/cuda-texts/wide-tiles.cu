// Tiles of more than a warp, with and without memory that the source gives, tiles of tiles, and values of more than 64 bits.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <unsigned Size>
__device__ int widths(const cg::thread_block &block, int v, int *ranks) {
  auto tile = cg::tiled_partition<Size>(block);
  int sum = cg::reduce(tile, v, cg::plus<int>());
  int most = cg::reduce(tile, v, cg::greater<int>());
  int last = tile.shfl(v, Size - 1);
  // All threads of a tile of more than a warp give the same source rank.
  int told = tile.shfl(v, 33 + last * last % 8);
  int votes = (tile.any(v == 7) ? 1 : 0) + (tile.all(v < 9) ? 2 : 0) + (tile.any(v > 1000) ? 4 : 0);
  ranks[block.thread_rank()] = tile.thread_rank() * 10000 + tile.meta_group_rank() * 100 + tile.meta_group_size() + tile.size();
  return sum + 3 * most + 5 * last + 7 * told + 11 * votes;
}

__global__ void all_widths(const int *x, int *y, int *ranks) {
  __shared__ cg::block_tile_memory<256> memory;
  cg::thread_block block = cg::this_thread_block(memory);
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  int found = widths<64>(block, v, ranks);
  found += widths<128>(block, v, ranks + 256);
  y[blockIdx.x * blockDim.x + threadIdx.x] = found + 1000 * widths<256>(block, v, ranks + 512);
}

// The tiles of a block may go different ways. Values in shared memory are seen behind sync().
__global__ void own_ways(const float *x, float *y) {
  __shared__ float values[256];
  auto tile = cg::tiled_partition<128>(cg::this_thread_block());
  cg::thread_block_tile<128> any_tile = tile;
  int t = threadIdx.x;
  for (int step = 0; step <= (int)any_tile.meta_group_rank(); step++) {
    values[t] = x[t] + step;
    tile.sync();
    float next = values[t / 128 * 128 + (t + 1) % 128];
    cg::sync(tile);
    values[t] = next;
    tile.sync();
  }
  if (tile.meta_group_rank() == 0) values[t] += cg::reduce(tile, x[t], [](float a, float b) { return a < b ? a : b; });
  y[t] = values[t];
}

// Tiles of tiles, whose places are those in the larger tile.
__global__ void tiles_of_tiles(const int *x, int *y, int *places) {
  auto block = cg::this_thread_block();
  auto wide = cg::tiled_partition<64>(block);
  auto warp = cg::tiled_partition<32>(wide);
  auto four = cg::tiled_partition<4>(warp);
  cg::thread_block_tile<4> plain = four;
  int t = threadIdx.x;
  places[t] = warp.meta_group_rank() * 1000 + four.meta_group_rank() * 10 + plain.meta_group_rank() * 100000 + four.meta_group_size() +
              plain.meta_group_size() + warp.meta_group_size();
  y[t] = cg::reduce(four, x[t], cg::plus<int>()) + 100 * cg::reduce(wide, x[t], cg::less<int>());
}

__global__ void wide_scans(const int *x, int *sums, int *before) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  sums[threadIdx.x] = cg::inclusive_scan(tile, x[threadIdx.x]);
  before[threadIdx.x] = cg::exclusive_scan(tile, x[threadIdx.x], cg::plus<int>());
}

__global__ void large_values(const float4 *x, float4 *y) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float4 v = x[threadIdx.x];
  float4 first = warp.shfl(v, 0);
  float4 up = warp.shfl_up(v, 2);
  float4 down = warp.shfl_down(v, 3);
  float4 other = warp.shfl_xor(v, 16);
  y[threadIdx.x] = make_float4(first.x + up.w, up.y + down.x, down.z + other.w, other.y + first.z);
}
