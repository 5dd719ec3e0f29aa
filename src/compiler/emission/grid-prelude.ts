// What a kernel stands on whose blocks wait for each other. The CPU device's side is regions.h of the shim: this is CUDA's.
import { MAX_STREAMS } from '../../protocol/protocol.gen.js';

/**
 * The barrier of the grid. Blocks of which all threads have left are not waited for, which cooperative groups would do; so
 * it counts who has come and who has left in one word, of which one thread sees itself as the last. Launches of a stream
 * follow each other, and each stream has a place of its own, which the last block to leave sets back. Barriers of the block
 * stand behind macros: the CPU device, which does not see this, would take the kernel for a text whose threads wait.
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
