// Block fusion: blocks that are adjacent along x run as one if the kernel's threads use only their global x index
// (src/compiler/simd/block-fusion.ts). Rows then span a run of blocks, so groups are full and the tests before them run
// once.
#pragma once

#include "barrier_regions.h"

/// The number of blocks, from blockIdx on, that the kernel takes. It returns false, without any effect, if it needs
/// them one by one.
struct mr_blocks {
  int count;
};

template <auto Kernel, class... Args>
static MR_INLINE void mr_run_together(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                                      Args... args) {
  const int columns = static_cast<int>(launch->grid[0]);
  const int rows = static_cast<int>(launch->grid[1]);
  const auto index_of = [](const unsigned* from) {
    return mr_index3{mr_index(static_cast<int>(from[0])), mr_index(static_cast<int>(from[1])),
                     mr_index(static_cast<int>(from[2]))};
  };
  const mr_index3 block_dim = index_of(launch->block);
  const mr_index3 grid_dim = index_of(launch->grid);
  unsigned long long alone = first;
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch);) {
    const int column = static_cast<int>(block % columns);
    const mr_index3 block_index{mr_index(column), mr_index(static_cast<int>(block / columns % rows)),
                                mr_index(static_cast<int>(block / columns / rows))};
    const unsigned long long left = end - block;
    int count = columns - column;
    if (left < static_cast<unsigned>(count)) count = static_cast<int>(left);
    const unsigned long long behind = block + static_cast<unsigned>(count);
    if (block < alone) count = 1;
    launch->block_now = block;
    launch->blocks_now = static_cast<unsigned>(count);
    if (Kernel(mr_index3{}, block_index, block_dim, grid_dim, mr_blocks{count}, args...)) {
      block += static_cast<unsigned>(count);
    } else {
      alone = behind;
    }
  }
}

template <class... Params>
struct mr_signature<bool(mr_index3, mr_index3, mr_index3, mr_index3, mr_blocks, Params...)>
    : mr_signature<void(Params...)> {
  template <auto Kernel, unsigned... Number>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_together<Kernel, Params...>(launch, first, end, mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};

#undef MR_BEGIN_BLOCK
#define MR_BEGIN_BLOCK(n0, n1, n2)                                                                          \
  const mr_box mr_box_of_block{                                                                             \
      mr_below_bound(blockDim.x.value * mr_run.count, n0 - blockIdx.x.value * blockDim.x.value),            \
      mr_within(n1, blockIdx.y, blockDim.y), mr_within(n2, blockIdx.z, blockDim.z)};                        \
  if (mr_box_of_block.width <= 0 || mr_box_of_block.height <= 0 || mr_box_of_block.depth <= 0) return true; \
  constexpr const unsigned char* mr_gone = nullptr;                                                         \
  constexpr bool mr_are_some_gone = false;
/// Some thread may leave an array, and the fault report must name its block.
#define MR_ONE_BY_ONE_UNLESS(is_fast) \
  if (!is_fast && mr_run.count > 1) return false;
/// The full groups, in nested loops: a row is long here, and the loop along it has nothing but the groups' own work.
#define MR_EACH_GROUP_IN_ROWS(first, end)                                          \
  for (int mr_z = 0; mr_z < mr_box_of_block.depth; ++mr_z)                         \
    for (int mr_y = 0; mr_y < mr_box_of_block.height; ++mr_y)                      \
      for (int mr_x = first; mr_x < end; mr_x += MR_WIDTH) {                       \
        const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)}; \
        const int mr_thread = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value + mr_x;
#undef MR_FULL_GROUPS
#define MR_FULL_GROUPS(is_fast, lanes, width) MR_FULL_GROUPS_IN(MR_EACH_GROUP_IN_ROWS, is_fast, lanes, width)
