// CUDA definitions for a kernel with grid barriers. The CPU device's definitions are in the shim's barrier_regions.h.
import { MAX_STREAMS } from '../../protocol/protocol.gen.js';

/**
 * The grid barrier. Unlike cooperative groups, it does not wait for blocks of which all threads have returned: one word counts the blocks
 * that arrived and those that left, and the thread that completes the count releases the others. Launches of one stream run one after the
 * other, and each stream has its own counter, which the last block to leave resets. Block barriers are behind macros, because the CPU
 * device would otherwise treat the kernel as CUDA C++ source whose threads wait for each other.
 */
export const GRID_PRELUDE: readonly string[] = `#ifndef MILLRACE_CPU_DEVICE
struct MrGrid {
  unsigned long long state;
  unsigned turn;
};
static __device__ MrGrid mr_grids[${MAX_STREAMS}];
struct MrGridThread {
  MrGrid* grid;
  unsigned* threads_left;
  unsigned* turns_begun;
  unsigned turns;
  __device__ MrGridThread(MrGrid* at, unsigned* left, unsigned* begun)
      : grid(at), threads_left(left), turns_begun(begun), turns(0u) {}
  __device__ ~MrGridThread() {
    __threadfence();
    if (atomicSub(threads_left, 1u) == 1u) count(1ull << 32);
  }
  __device__ bool count(unsigned long long one) {
    __threadfence();
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const unsigned long long state = atomicAdd(&grid->state, one) + one;
    const unsigned arrived = (unsigned)state;
    const unsigned left = (unsigned)(state >> 32);
    if (left == blocks) *(volatile unsigned long long*)&grid->state = 0ull;
    if (arrived + left != blocks || arrived == 0u) return false;
    atomicAdd(&grid->state, 0ull - arrived);
    __threadfence();
    atomicAdd(&grid->turn, 1u);
    return true;
  }
  __device__ void sync() {
    MR_SYNCTHREADS();
    if (atomicCAS(turns_begun, turns, turns + 1u) == turns) {
      volatile unsigned* const turn = &grid->turn;
      const unsigned before = *turn;
      if (!count(1ull)) while (*turn == before);
      __threadfence();
    }
    ++turns;
    MR_SYNCTHREADS();
  }
};
#define MR_BEGIN_GRID(stream) \\
  __shared__ unsigned mr_threads_left, mr_turns_begun; \\
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0u) { \\
    mr_threads_left = blockDim.x * blockDim.y * blockDim.z; \\
    mr_turns_begun = 0u; \\
  } \\
  __syncthreads(); \\
  MrGridThread mr_grid_thread(mr_grids + stream, &mr_threads_left, &mr_turns_begun);
#define MR_SYNC_GRID() mr_grid_thread.sync()
#endif`.split('\n');
