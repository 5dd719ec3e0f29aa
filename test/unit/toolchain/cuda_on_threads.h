// Runs the CUDA form of emitted source like CUDA: one system thread per thread of a block, real barriers, real atomics.
// The CPU device's form of the same source must give the same results.
#pragma once

#include "cuda_on_cpu.h"

// The names by which emitted source distinguishes the devices.
#undef MILLRACE_CPU_DEVICE
#undef __global__
#define __global__
#undef __shared__
#define __shared__ static
#define asm(dynamic_shared_size) bytes = mr_dynamic_shared_bytes
#define atomicAdd_block atomicAdd
#define atomicMax_block atomicMax

extern "C" {
void mr_wait_for_block();
void mr_wait_for_warp();
/// Runs `run` on each thread, and returns when all have returned.
void mr_run_threads(unsigned threads, void (*run)(void* of, unsigned thread), void* of);
}
#define __syncthreads mr_wait_for_block
#define __syncwarp mr_wait_for_warp

template <class... Params>
struct mr_block_of_threads {
  void (*kernel)(mr_index3, mr_index3, mr_index3, mr_index3, Params...);
  const MrLaunch* launch;
  mr_index3 block, dim, grid;

  template <unsigned... Number>
  void Call(mr_index3 thread, mr_numbers<Number...>) {
    kernel(thread, block, dim, grid, mr_argument<Params>(launch->params[Number])...);
  }
  static void Run(void* of, unsigned number) {
    auto& self = *static_cast<mr_block_of_threads*>(of);
    mr_dynamic_shared = self.launch->dynamic_shared;
    mr_dynamic_shared_bytes = self.launch->shared_bytes;
    const int width = self.dim.x.value, height = self.dim.y.value, thread = static_cast<int>(number);
    // For device functions.
    blockIdx = self.block;
    blockDim = self.dim;
    gridDim = self.grid;
    threadIdx = {mr_index(thread % width), mr_index(thread / width % height), mr_index(thread / width / height)};
    self.Call(threadIdx, mr_count_to<sizeof...(Params)>{});
  }
};

/// One block after the other, because blocks share the static shared memory.
template <class... Params>
static void mr_run_blocks_of_threads(void (*kernel)(mr_index3, mr_index3, mr_index3, mr_index3, Params...),
                                     const MrLaunch* launch, unsigned long long first, unsigned long long end) {
  const auto index = [](unsigned value) { return mr_index(static_cast<int>(value)); };
  const unsigned* grid = launch->grid;
  const unsigned* block = launch->block;
  for (unsigned long long at = first; at < end; ++at) {
    mr_block_of_threads<Params...> of{
        kernel, launch, {index(at % grid[0]), index(at / grid[0] % grid[1]), index(at / grid[0] / grid[1])}, {}, {}};
    of.dim = {index(block[0]), index(block[1]), index(block[2])};
    of.grid = {index(grid[0]), index(grid[1]), index(grid[2])};
    mr_run_threads(block[0] * block[1] * block[2], &of.Run, &of);
  }
}

#undef MR_KERNEL
#define MR_KERNEL(name)                                                                             \
  extern "C" {                                                                                      \
  MR_EXPORT void mr_entry_##name(const MrLaunch* mr_launch, unsigned long long mr_first,         \
                                 unsigned long long mr_end) {                                       \
    mr_run_blocks_of_threads(&name, mr_launch, mr_first, mr_end);                                   \
  }                                                                                                 \
  MR_EXPORT_DATA extern const mr_signature<decltype(name)>::Table mr_params_##name;                 \
  const mr_signature<decltype(name)>::Table mr_params_##name = mr_signature<decltype(name)>::table; \
  }
