// Kernels that the builder turned into loops over rows of threads (src/cuda-cpp/lower/grid-row-loops.ts): rows
// of a block, or of all adjacent blocks of a run.
#pragma once

#include "kernel_exports.h"

/// The x positions that such a kernel covers: within the block, or in the grid.
struct mr_row {
  int from, to;
};
/// Return types that mark such kernels. Their first parameters are an index with the row's y and z, and the indices
/// that a block shares; for rows of the grid, those of the first block.
struct mr_rows_of_block {};
struct mr_rows_of_grid {};

#define MR_IN_ROW __attribute__((always_inline))

/// The end of the positions from `from` for which `holds` gives the first one's result. It changes at most once.
template <class Holds>
MR_INLINE int mr_same_until(int from, int to, Holds holds) {
  const bool first = holds(from);
  int high = to - 1;
  if (holds(high) == first) return to;
  for (int low = from; high - low > 1;) {
    const int middle = low + (high - low) / 2;
    (holds(middle) == first ? low : high) = middle;
  }
  return high;
}

template <bool IsOfGrid, auto Kernel, class... Args>
static MR_INLINE void mr_run_rows(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                                  Args... args) {
  const int width = static_cast<int>(launch->block[0]);
  const int height = static_cast<int>(launch->block[1]);
  const int depth = static_cast<int>(launch->block[2]);
  const int columns = static_cast<int>(launch->grid[0]);
  const int rows = static_cast<int>(launch->grid[1]);
  const mr_index3 block_dim{mr_index(width), mr_index(height), mr_index(depth)};
  const mr_index3 grid_dim{mr_index(columns), mr_index(rows), mr_index(static_cast<int>(launch->grid[2]))};
  mr_launch_of_block = launch;
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch);) {
    const int column = static_cast<int>(block % columns);
    const mr_index3 block_index{mr_index(column), mr_index(static_cast<int>(block / columns % rows)),
                                mr_index(static_cast<int>(block / columns / rows))};
    const unsigned long long left = end - block;
    const int count = !IsOfGrid                                        ? 1
                      : left < static_cast<unsigned>(columns - column) ? static_cast<int>(left)
                                                                       : columns - column;
    launch->block_now = block;
    launch->blocks_now = static_cast<unsigned>(count);
    const mr_row row = IsOfGrid ? mr_row{column * width, (column + count) * width} : mr_row{0, width};
    for (int z = 0; z < depth; ++z) {
      for (int y = 0; y < height; ++y) {
        Kernel(mr_index3{mr_index(0), mr_index(y), mr_index(z)}, block_index, block_dim, grid_dim, row, args...);
      }
    }
    block += static_cast<unsigned>(count);
  }
}

template <bool IsOfGrid, class... Params>
struct mr_signature_of_rows : mr_signature<void(Params...)> {
  template <auto Kernel, unsigned... Number>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_rows<IsOfGrid, Kernel, Params...>(launch, first, end, mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};

template <class... Params>
struct mr_signature<mr_rows_of_block(mr_index3, mr_index3, mr_index3, mr_index3, mr_row, Params...)>
    : mr_signature_of_rows<false, Params...> {};
template <class... Params>
struct mr_signature<mr_rows_of_grid(mr_index3, mr_index3, mr_index3, mr_index3, mr_row, Params...)>
    : mr_signature_of_rows<true, Params...> {};
