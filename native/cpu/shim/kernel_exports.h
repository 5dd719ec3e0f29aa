// Exports a kernel from an image. MR_KERNEL(name) exports
//   mr_entry_<name>(launch, first, end)   runs the blocks [first, end), numbered with x fastest; any thread, several at
//                                         once
//   mr_params_<name>                      the number of parameters, then the size of each in bytes
// and MR_MAX_THREADS(name, threads) exports mr_max_threads_<name>, the largest block size in threads.
// The parameter types come from the kernel's type, so the name suffices.
#pragma once

#include "launch_abi.h"
#include "race_checks.h"
#include "thread_index.h"

#if defined(MR_ASSERTING)
#include "assertions.h"
/// Parameters after the kernel's own: the launch's fault slot and fault word.
static constexpr unsigned mr_hidden_params = 2;
#else
static constexpr unsigned mr_hidden_params = 0;
template <auto Kernel, class... Args>
static MR_INLINE void mr_run_thread(Args... args) {
  Kernel(args...);
}
#endif

/// The stack of a thread: CUDA's limit of local memory, what calls out of the kernel need, and the guard, which is the
/// lowest whole page. On arm64, systems may have pages of 64 KiB. An odd number of small pages, so that the
/// translations of stacks that run in turns do not displace each other.
#if defined(__aarch64__)
static constexpr unsigned long long mr_stack_bytes = (512 + 64 + 128 + 4) << 10;
#else
static constexpr unsigned long long mr_stack_bytes = (512 + 64 + 4) << 10;
#endif

/// Checked before each block.
static MR_INLINE bool mr_is_stopped(const MrLaunch* launch) {
  return launch->last_kept != nullptr && launch->ticket > __atomic_load_n(launch->last_kept, __ATOMIC_RELAXED);
}

/// The launch of the blocks that this thread runs.
MR_OF_THREAD const MrLaunch* mr_launch_of_block;

/// The lowest of `count` stacks for threads of a block, which stay until the entry returns.
static __attribute__((noinline)) char* mr_take_stacks(unsigned count) {
  mr_need_stack();
  return mr_launch_of_block->take_stacks(mr_launch_of_block->run, count, mr_stack_bytes);
}

/// Fails the launch as out of memory.
static inline void mr_lack_memory() {
  mr_take_stacks(~0u);
}

/// For cooperative launches: returns when all blocks that have not ended are here. The compiler cannot see the called
/// code, so it keeps no memory values in registers across the call.
static inline void mr_wait_for_grid() {
  mr_need_stack();
  mr_launch_of_block->wait_for_grid(mr_launch_of_block->grid_barrier);
}

/// The first parameter, or the first after the indices, of a kernel that takes a whole block and contains the loops
/// over its threads (barrier_regions.h).
struct mr_block {};

/// Runs every thread of every block, or every block. The x loop is innermost and contains only the kernel, so that it
/// vectorises.
template <bool IsPassedIndices, bool IsOfBlocks, auto Kernel, class... Args>
static MR_INLINE void mr_run_blocks(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                                    Args... args) {
  const int width = static_cast<int>(launch->block[0]);
  const int height = static_cast<int>(launch->block[1]);
  const int depth = static_cast<int>(launch->block[2]);
  const int columns = static_cast<int>(launch->grid[0]);
  const int rows = static_cast<int>(launch->grid[1]);
  const mr_index3 block_dim{mr_index(width), mr_index(height), mr_index(depth)};
  const mr_index3 grid_dim{mr_index(columns), mr_index(rows), mr_index(static_cast<int>(launch->grid[2]))};
  mr_launch_of_block = launch;
  mr_dynamic_shared = launch->dynamic_shared;
  mr_dynamic_shared_bytes = launch->shared_bytes;
  blockDim = block_dim;
  gridDim = grid_dim;
  int column = static_cast<int>(first % columns);
  int row = static_cast<int>(first / columns % rows);
  int layer = static_cast<int>(first / columns / rows);
  for (unsigned long long block = first; block < end && !mr_is_stopped(launch); ++block) {
    const mr_index3 block_index{mr_index(column), mr_index(row), mr_index(layer)};
    blockIdx = block_index;
    launch->block_now = block;
    mr_tell(mr_race_begin_block, launch->block[0] * launch->block[1] * launch->block[2]);
    if constexpr (IsOfBlocks) {
      mr_race_thread(mr_race_every_thread);
      if constexpr (IsPassedIndices) {
        Kernel(mr_index3{}, block_index, block_dim, grid_dim, mr_block{}, args...);
      } else {
        Kernel(mr_block{}, args...);
      }
    } else {
      for (int z = 0; z < depth; ++z) {
        for (int y = 0; y < height; ++y) {
          threadIdx.y = mr_index(y);
          threadIdx.z = mr_index(z);
          for (int x = 0; x < width; ++x) {
            threadIdx.x = mr_index(x);
            mr_race_thread(static_cast<unsigned>((z * height + y) * width + x));
            if constexpr (IsPassedIndices) {
              mr_run_thread<Kernel>(mr_index3{mr_index(x), mr_index(y), mr_index(z)}, block_index, block_dim, grid_dim,
                                    args...);
            } else {
              mr_run_thread<Kernel>(args...);
            }
            mr_race_thread(mr_race_no_thread);
          }
        }
      }
    }
    mr_race_thread(mr_race_no_thread);
    mr_tell(mr_race_end_block);
    if (++column == columns) {
      column = 0;
      if (++row == rows) {
        row = 0;
        ++layer;
      }
    }
  }
}

/// Arguments are 8-byte aligned, whatever their type requires. Where that suffices, they are read through their type:
/// g++ treats an address copied as bytes as a number that may point into the block's own arrays.
template <class T>
static MR_INLINE T mr_argument(const void* from) {
  if constexpr (alignof(T) <= 8) {
    return *static_cast<const T*>(from);
  } else if constexpr (!__is_constructible(T)) {
    alignas(T) char value[sizeof(T)];
    __builtin_memcpy(value, from, sizeof(T));
    return *reinterpret_cast<const T*>(value);
  } else {
    T value;
    __builtin_memcpy(&value, from, sizeof(T));
    return value;
  }
}

template <unsigned... Numbers>
struct mr_numbers {};
#if defined(__clang__)
template <class T, T... Numbers>
using mr_numbers_of = mr_numbers<Numbers...>;
template <unsigned Count>
using mr_count_to = __make_integer_seq<mr_numbers_of, unsigned, Count>;
#else
template <unsigned Count>
using mr_count_to = mr_numbers<__integer_pack(Count)...>;
#endif

template <class... Params>
struct mr_types {};

template <bool IsPassedIndices, bool IsOfBlocks, class... Params>
struct mr_signature_of {
  /// The name's prefix prevents collisions with macros of the source.
  using mr_list = mr_types<Params...>;
  struct Table {
    unsigned count;
    /// Includes the hidden parameters.
    unsigned sizes[sizeof...(Params) + 2];
  };
  static constexpr Table table = {sizeof...(Params) + mr_hidden_params,
                                  {sizeof(Params)..., sizeof(void*), sizeof(void*)}};

  template <auto Kernel, unsigned... Number>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end,
                            mr_numbers<Number...>) {
    mr_run_blocks<IsPassedIndices, IsOfBlocks, Kernel, Params...>(launch, first, end,
                                                                  mr_argument<Params>(launch->params[Number])...);
  }
  template <auto Kernel>
  static MR_INLINE void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    run<Kernel>(launch, first, end, mr_count_to<sizeof...(Params)>{});
  }
};

template <class Function>
struct mr_signature;
template <class... Params>
struct mr_signature<void(Params...)> : mr_signature_of<false, false, Params...> {};
template <class... Params>
struct mr_signature<void(mr_index3, mr_index3, mr_index3, mr_index3, Params...)>
    : mr_signature_of<true, false, Params...> {};
template <class... Params>
struct mr_signature<void(mr_block, Params...)> : mr_signature_of<false, true, Params...> {};
template <class... Params>
struct mr_signature<void(mr_index3, mr_index3, mr_index3, mr_index3, mr_block, Params...)>
    : mr_signature_of<true, true, Params...> {};

// Exports a kernel's `__launch_bounds__`, in threads per block.
#define MR_MAX_THREADS(name, ...)                                            \
  extern "C" {                                                               \
  MR_EXPORT_DATA extern const unsigned mr_max_threads_##name;                \
  const unsigned mr_max_threads_##name = static_cast<unsigned>(__VA_ARGS__); \
  }

#if defined(MR_ASSERTING)
static MR_INLINE void mr_take_hidden(const MrLaunch* launch, unsigned count) {
  mr_fault = mr_argument<MrFaultSlot*>(launch->params[count - 2]);
  mr_fault_word = mr_argument<unsigned*>(launch->params[count - 1]);
  mr_leave_stack = nullptr;
}
#else
static MR_INLINE void mr_take_hidden(const MrLaunch*, unsigned) {}
#endif

// Parameter names also have the prefix, because a kernel may be called `first`.
#define MR_KERNEL(name) MR_KERNEL_OF(name, name)
/// The last arguments are the kernel's C++ name, with its namespaces and template arguments.
#define MR_KERNEL_OF(name, ...) MR_EXPORT_KERNEL(mr_signature, name, __VA_ARGS__)
#define MR_EXPORT_KERNEL(signature, name, ...)                                                                        \
  extern "C" {                                                                                                        \
  MR_EXPORT void mr_entry_##name(const MrLaunch* mr_launch, unsigned long long mr_first, unsigned long long mr_end) { \
    mr_race_enter(mr_launch);                                                                                         \
    mr_take_hidden(mr_launch, signature<decltype(__VA_ARGS__)>::table.count);                                         \
    signature<decltype(__VA_ARGS__)>::template run<&__VA_ARGS__>(mr_launch, mr_first, mr_end);                        \
  }                                                                                                                   \
  MR_EXPORT_DATA extern const signature<decltype(__VA_ARGS__)>::Table mr_params_##name;                               \
  const signature<decltype(__VA_ARGS__)>::Table mr_params_##name = signature<decltype(__VA_ARGS__)>::table;           \
  }
