// Macros for the emitted form of a TypeScript kernel with barriers (src/compiler/emission/region-emitter.ts has CUDA's
// definition of each). The kernel is called once per block. The code between two barriers is a region: a loop over the
// threads of the block. Code outside the regions runs once, since it is the same for all threads.
//
// A thread that returns, or whose index is out of bounds, is marked as gone: later regions skip it, and the block ends
// when all threads are gone. Loop bounds exclude the threads outside the launch's extents.
#pragma once

#include "index_ranges.h"

/// Most threads of a block: CUDA's limit on every device, and this device's.
static constexpr int mr_most_threads = 1024;

/// Precedes the parameters: the kernel takes whole blocks (kernel_exports.h).
#define MR_BLOCK_FORM mr_block,

/// The number of the block's threads along an axis that lie within the launch's extent.
static MR_INLINE int mr_within(int extent, mr_index block, mr_index dim) {
  const int left = extent - block.value * dim.value;
  return left < dim.value ? left : dim.value;
}

struct mr_box {
  int width, height, depth;
};

/// The number of threads that have not left.
static MR_INLINE int mr_count_left(const unsigned char* gone, mr_box box, mr_index3 dim) {
  int left = 0;
  for (int z = 0; z < box.depth; ++z) {
    for (int y = 0; y < box.height; ++y) {
      const unsigned char* row = gone + (z * dim.y.value + y) * dim.x.value;
      for (int x = 0; x < box.width; ++x) left += 1 - row[x];
    }
  }
  return left;
}

/// The first thread that has not left; one exists, or the block would have ended.
static inline mr_index3 mr_first_left(const unsigned char* gone, mr_index3 dim) {
  int thread = 0;
  while (gone != nullptr && gone[thread]) ++thread;
  return {mr_index(thread % dim.x.value), mr_index(thread / dim.x.value % dim.y.value),
          mr_index(thread / dim.x.value / dim.y.value)};
}

#define MR_BOX_OF_BLOCK(n0, n1, n2)                                                                          \
  const mr_box mr_box_of_block{mr_within(n0, blockIdx.x, blockDim.x), mr_within(n1, blockIdx.y, blockDim.y), \
                               mr_within(n2, blockIdx.z, blockDim.z)};                                       \
  if (mr_box_of_block.width <= 0 || mr_box_of_block.height <= 0 || mr_box_of_block.depth <= 0) return;
/// Begins a kernel whose threads all stay until the last region ends.
#define MR_BEGIN_BLOCK(n0, n1, n2)                  \
  MR_BOX_OF_BLOCK(n0, n1, n2)                       \
  constexpr const unsigned char* mr_gone = nullptr; \
  constexpr bool mr_are_some_gone = false;
#define MR_BEGIN_BLOCK_OF_LEAVING(n0, n1, n2)                                         \
  MR_BOX_OF_BLOCK(n0, n1, n2)                                                         \
  unsigned char mr_gone[mr_most_threads];                                             \
  __builtin_memset(mr_gone, 0, blockDim.x.value* blockDim.y.value* blockDim.z.value); \
  bool mr_are_some_gone = false;

/// Begins a region for every thread, when none has left.
#define MR_EVERY_THREAD(region)                                                    \
  for (int mr_z = 0; mr_z < mr_box_of_block.depth; ++mr_z) {                       \
    for (int mr_y = 0; mr_y < mr_box_of_block.height; ++mr_y) {                    \
      const int mr_row = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value;      \
      for (int mr_x = 0; mr_x < mr_box_of_block.width; ++mr_x) {                   \
        const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)}; \
        const int mr_thread = mr_row + mr_x;                                       \
        mr_race_thread(static_cast<unsigned>(mr_thread));                          \
        {
/// Begins a region for the threads that have not left.
#define MR_THREADS(region) \
  MR_EVERY_THREAD(region)  \
  if (mr_are_some_gone && mr_gone[mr_thread]) goto mr_end_##region;
#define MR_END(region)                  \
  }                                     \
  mr_end_##region:;                     \
  mr_race_thread(mr_race_every_thread); \
  }                                     \
  }                                     \
  }
/// The thread leaves the kernel.
#define MR_LEAVE(region)    \
  {                         \
    mr_gone[mr_thread] = 1; \
    goto mr_end_##region;   \
  }
/// The thread leaves in the last region, after which no code needs to know.
#define MR_FINISH(region) goto mr_end_##region;
/// Follows a region in which threads may leave.
#define MR_SOME_LEFT                                                                                      \
  {                                                                                                       \
    const int mr_left = mr_count_left(mr_gone, mr_box_of_block, blockDim);                                \
    if (mr_left == 0) return;                                                                             \
    mr_are_some_gone = mr_left != mr_box_of_block.width * mr_box_of_block.height * mr_box_of_block.depth; \
  }
/// Reports a fault in code that runs once for all threads.
#define MR_FAULT_ALL(...)                                         \
  {                                                               \
    const mr_index3 threadIdx = mr_first_left(mr_gone, blockDim); \
    MR_FAULT(__VA_ARGS__);                                        \
  }

/// A variable that crosses regions: one element per thread.
#define MR_CROSSING(type, name) __attribute__((aligned(64))) type mr_of_##name[mr_most_threads];
#define MR_OWN(type, name) type& name = mr_of_##name[mr_thread];

/// Local memory of all threads of a block, which may be too large for the stack.
template <class T>
struct mr_thread_memory {
  T* const address;
  MR_INLINE explicit mr_thread_memory(size_t threads)
      : address(static_cast<T*>(__builtin_malloc(threads * sizeof(T)))) {
    if (address == nullptr) mr_lack_memory();
  }
  MR_INLINE ~mr_thread_memory() { __builtin_free(address); }
};
#define MR_CROSSING_ARRAY(type, name, elements)                                                                  \
  const mr_thread_memory<type[elements]> mr_of_##name(static_cast<size_t>(blockDim.x.value) * blockDim.y.value * \
                                                      blockDim.z.value);
#define MR_OWN_ARRAY(type, name, elements) type(&name)[elements] = mr_of_##name.address[mr_thread];

// The threads of a block run on one thread here, so only the compiler must not reorder memory accesses.
#define MR_SYNCTHREADS() (__atomic_signal_fence(__ATOMIC_SEQ_CST), mr_tell(mr_race_barrier))
#define MR_SYNCWARP() (__atomic_signal_fence(__ATOMIC_SEQ_CST), mr_tell_warps_met(blockDim))
#define MR_BEGIN_GRID(stream)
#define MR_SYNC_GRID() (mr_wait_for_grid(), mr_tell(mr_race_barrier))

static MR_INLINE void mr_tell_warps_met([[maybe_unused]] mr_index3 dim) {
#if defined(MR_FINDS_RACES)
  const unsigned threads = static_cast<unsigned>(dim.x.value * dim.y.value * dim.z.value);
  for (unsigned first = 0; first < threads; first += 32) mr_tell(mr_race_warp, first, ~0u);
#endif
}
