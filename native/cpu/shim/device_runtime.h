// Kernels that launch kernels, and the device runtime functions that they may call. The builder includes this header if
// the source launches kernels.
//
// It rewrites `k<<<grid, block, shared, stream>>>(args)` as `mr_launch<k>(grid, block, shared, stream)(args)`
// (src/cuda-cpp/lower/kernel-launches.ts). The arguments are converted to the kernel's parameter types; the
// launcher of these blocks passes them to the device, which copies them. native/cpu/dynamic_parallelism.h defines when
// a launch runs.
#pragma once

#include "memory_spaces.h"
#include "runtime_types.h"

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamTailLaunch ((cudaStream_t)mr_tail_stream)
#define cudaStreamFireAndForget ((cudaStream_t)mr_fire_and_forget_stream)

MR_INLINE dim3 mr_extent(dim3 extent) {
  return extent;
}
/// The extent from an index or a product with one, and from no type that would need a conversion to one.
template <class T>
MR_INLINE mr_enable_if_t<mr_is_same<T, mr_index> || mr_is_same<T, mr_product>, dim3> mr_extent(T extent) {
  return dim3(static_cast<unsigned>(extent.value));
}

/// CUDA's limit for all parameters of a kernel together.
static constexpr unsigned mr_max_parameter_bytes = 4096;

/// How an argument of a launch reaches memory that only the launching block or thread has; mr_no_own_memory if it does
/// not. Pointers may be anywhere in it: in a struct, in an array of one, or as an integer.
static inline unsigned mr_own_memory_in(const void* argument, unsigned bytes) {
  for (unsigned at = 0; at + sizeof(void*) <= bytes; at += sizeof(unsigned)) {
    const void* word;
    __builtin_memcpy(&word, static_cast<const char*>(argument) + at, sizeof word);
    if (mr_is_shared(word)) return mr_own_shared;
    if (mr_is_local(word)) return mr_own_local;
  }
  return mr_no_own_memory;
}

/// The callable that a rewritten launch invokes with its arguments.
template <class Entry>
struct mr_launcher {
  dim3 grid;
  dim3 block;
  unsigned long long shared_bytes;
  cudaStream_t stream;
  unsigned max_threads;

  /// Not inlined, because kernels are inlined into loops over threads and a launch costs more than a call.
  __attribute__((noinline)) void launch(const void* const* params, const unsigned* sizes, unsigned count) const {
    MrChild child{&Entry::run,
                  params,
                  sizes,
                  count,
                  {grid.x, grid.y, grid.z},
                  {block.x, block.y, block.z},
                  max_threads,
                  shared_bytes,
                  reinterpret_cast<unsigned long long>(stream),
                  {blockIdx.x, blockIdx.y, blockIdx.z},
                  {threadIdx.x, threadIdx.y, threadIdx.z},
                  mr_no_own_memory,
                  0};
    // The hidden parameters follow those of the source.
    while (child.own_argument + mr_hidden_params < count && child.own_memory == mr_no_own_memory) {
      child.own_memory = mr_own_memory_in(params[child.own_argument], sizes[child.own_argument]);
      ++child.own_argument;
    }
    MrLauncher* launcher = mr_launch_of_block->launcher;
    mr_need_stack();
    launcher->launch(launcher, &child);
  }
};

/// Padding may hold what was left of pointers to local memory.
template <class T>
MR_INLINE void mr_clear_padding([[maybe_unused]] T& argument) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  if constexpr (__is_trivially_copyable(T)) __builtin_clear_padding(&argument);
#endif
#endif
}

template <class Entry, class... Params>
struct mr_launcher_of : mr_launcher<Entry> {
  static_assert((0 + ... + sizeof(Params)) <= mr_max_parameter_bytes,
                "A kernel takes 4096 bytes of parameters at most.");
  MR_INLINE void operator()(Params... args) const {
    (mr_clear_padding(args), ...);
#if defined(MR_ASSERTING)
    const void* const params[] = {&args..., &mr_fault, &mr_fault_word};
    const unsigned sizes[] = {sizeof(Params)..., sizeof(mr_fault), sizeof(mr_fault_word)};
#else
    // One extra element, since an array cannot have zero elements.
    const void* const params[sizeof...(Params) + 1] = {&args...};
    const unsigned sizes[sizeof...(Params) + 1] = {sizeof(Params)...};
#endif
    this->launch(params, sizes, sizeof...(Params) + mr_hidden_params);
  }
};

template <class Entry, class Types>
struct mr_launcher_for;
template <class Entry, class... Params>
struct mr_launcher_for<Entry, mr_types<Params...>> {
  using type = mr_launcher_of<Entry, Params...>;
};

template <class T>
struct mr_pointee;
template <class T>
struct mr_pointee<T*> {
  using type = T;
};

#if defined(MR_WAITS)
template <class Function>
using mr_child_signature = mr_waiting_signature<Function>;
#else
template <class Function>
using mr_child_signature = mr_signature<Function>;
#endif

/// The entry of MR_KERNEL, without an exported name.
template <auto Kernel>
struct mr_kernel_entry {
  using Signature = mr_child_signature<typename mr_pointee<decltype(Kernel)>::type>;
  __attribute__((flatten)) static void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    mr_race_enter(launch);
    mr_take_hidden(launch, Signature::table.count);
    Signature::template run<Kernel>(launch, first, end);
  }
};

template <auto Kernel, unsigned MaxThreads = 1024, class Grid, class Block>
MR_INLINE auto mr_launch(Grid grid, Block block, unsigned long long shared_bytes = 0, cudaStream_t stream = nullptr) {
  using Entry = mr_kernel_entry<Kernel>;
  return typename mr_launcher_for<Entry, typename Entry::Signature::mr_list>::type{
      {mr_extent(grid), mr_extent(block), shared_bytes, stream, MaxThreads}};
}

// A kernel template whose arguments are deduced: each call is a separate kernel, with parameters of the arguments'
// types.
template <class Body, class... Args>
struct mr_body_entry {
  static MR_INLINE auto call(Args... args) { return (*static_cast<Body*>(nullptr))(args...); }
  using Signature = mr_child_signature<decltype(call(static_cast<Args (*)()>(nullptr)()...))(Args...)>;
  __attribute__((flatten)) static void run(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
    mr_race_enter(launch);
    mr_take_hidden(launch, Signature::table.count);
    Signature::template run<&mr_body_entry::call>(launch, first, end);
  }
};
template <class Body>
struct mr_body_launcher {
  dim3 grid;
  dim3 block;
  unsigned long long shared_bytes;
  cudaStream_t stream;
  template <class... Args>
  MR_INLINE void operator()(Args... args) const {
    mr_launcher_of<mr_body_entry<Body, Args...>, Args...>{{grid, block, shared_bytes, stream, 1024}}(args...);
  }
};
template <class Body, class Grid, class Block>
MR_INLINE mr_body_launcher<Body> mr_launch_body(Body, Grid grid, Block block, unsigned long long shared_bytes = 0,
                                                cudaStream_t stream = nullptr) {
  return {mr_extent(grid), mr_extent(block), shared_bytes, stream};
}
// A macro, because the builder would take a lambda in the source for one of the user's.
#define MR_BODY(...) [](auto... mr_args) { return __VA_ARGS__(mr_args...); }

MR_INLINE bool mr_is_mine() {
  const auto& refused = mr_launch_of_block->launcher->refused;
  return refused.error != 0 && refused.block[0] == blockIdx.x && refused.block[1] == blockIdx.y &&
         refused.block[2] == blockIdx.z && refused.thread[0] == threadIdx.x && refused.thread[1] == threadIdx.y &&
         refused.thread[2] == threadIdx.z;
}
/// The thread's last refused launch. Once this has returned it, the host does not report it any more.
static cudaError_t cudaGetLastError() {
  if (!mr_is_mine()) return cudaSuccess;
  const auto error = static_cast<cudaError_t>(mr_launch_of_block->launcher->refused.error);
  mr_launch_of_block->launcher->refused.error = 0;
  return error;
}
static cudaError_t cudaPeekAtLastError() {
  return mr_is_mine() ? static_cast<cudaError_t>(mr_launch_of_block->launcher->refused.error) : cudaSuccess;
}

static cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  MrLauncher* launcher = mr_launch_of_block->launcher;
  *stream = reinterpret_cast<cudaStream_t>(launcher->make_stream(launcher));
  return cudaSuccess;
}
/// Grids that were launched on the stream still run.
static cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return reinterpret_cast<unsigned long long>(stream) < mr_first_own_stream ? cudaErrorInvalidResourceHandle
                                                                            : cudaSuccess;
}

static const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorLaunchPendingCountExceeded:
      return "cudaErrorLaunchPendingCountExceeded";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "cudaErrorUnknown";
  }
}
static const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
