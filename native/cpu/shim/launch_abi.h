// The layouts and numbers that the CPU device (native/cpu) and the images that it loads share. Both include this file,
// so neither can change one alone; the assertions fail if their compilers lay a structure out differently. The identity
// of a cached image covers this folder, so a change here makes the device compile every kernel again.
//
// It includes no header and is valid C++17, because images are compiled without system headers.
#pragma once

struct MrLauncher;
struct MrRaces;

/// Bytes from the first variable of thread storage duration to the first `__shared__` variable (thread_variables.h).
#define MR_SHARED_OFFSET 0x40000000

/// What an image exports as `mr_place`, and its loader sets: where the variables of a thread are. Code of an image runs
/// on stacks in the thread's memory.
struct MrPlace {
  /// Of the address of the memory, in any address of it.
  unsigned long long mask;
  /// From there to the image's variables.
  unsigned long long image;
};
static_assert(sizeof(MrPlace) == 16, "");

/// Two threads of a tile that called `shfl` with different source ranks.
struct MrShuffle {
  struct Call {
    unsigned thread[3];
    unsigned source;
    /// Of the compiled source.
    unsigned line;
  };
  Call calls[2];
};
static_assert(sizeof(MrShuffle) == 40, "");

/// Memory of the thread that runs blocks.
struct MrSpaces {
  /// The `__shared__` variables of the image.
  const char* variables = nullptr;
  unsigned long long variable_bytes = 0;
  const char* stack = nullptr;
  unsigned long long stack_bytes = 0;
};
static_assert(sizeof(MrSpaces) == 32, "");

/// The arguments of an entry, which runs the blocks [first_block, end_block) of a launch.
struct MrLaunch {
  /// Pointers to the argument values, each aligned to 8 bytes.
  void* const* params = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  char* dynamic_shared = nullptr;
  /// Waits at the grid barrier of a cooperative launch, whose blocks each have a thread; else null.
  void (*wait_for_grid)(void* grid_barrier) = nullptr;
  void* grid_barrier = nullptr;
  /// Null if the image launches no kernels.
  MrLauncher* launcher = nullptr;
  void* run = nullptr;
  /// The running block, or the first of several, for the report of a kernel that had to stop.
  mutable volatile unsigned long long block_now = 0;
  mutable volatile unsigned long long blocks_now = 1;
  /// If not null, a block begins only if `ticket` is at most this value, which cancelling the device lowers.
  const unsigned long long* last_kept = nullptr;
  unsigned long long ticket = 0;
  /// A thread waits in a loop. `since` is the time at its first call, which sets it. Does not return when that is too
  /// long ago, and the launch fails.
  void (*spin)(void* run, unsigned long long* since) = nullptr;
  /// Looks for races of shared memory. Null if the image was not compiled for that.
  MrRaces* races = nullptr;
  /// Fails the launch and does not return.
  void (*fail_shuffle)(void* run, const MrShuffle* shuffle) = nullptr;
  /// Finds the memory of the calling thread.
  void (*find_spaces)(void* run, MrSpaces* found) = nullptr;
  /// Whether one of the stacks contains the address.
  bool (*is_on_stacks)(void* run, const void* address) = nullptr;
  /// The lowest of this many stacks of a size, which lie behind each other and stay until the entry returns. The lowest
  /// page of each is a guard. If there is no memory, it does not return, and the launch fails.
  char* (*take_stacks)(void* run, unsigned count, unsigned long long bytes) = nullptr;
};
static_assert(sizeof(MrLaunch) == 160, "");
static_assert(__builtin_offsetof(MrLaunch, dynamic_shared) == 40, "");
static_assert(__builtin_offsetof(MrLaunch, launcher) == 64, "");
static_assert(__builtin_offsetof(MrLaunch, block_now) == 80, "");
static_assert(__builtin_offsetof(MrLaunch, ticket) == 104, "");
static_assert(__builtin_offsetof(MrLaunch, races) == 120, "");

using MrEntry = void (*)(const MrLaunch*, unsigned long long first_block, unsigned long long end_block);

/// One launch from a kernel. The pointers are valid during the call.
struct MrChild {
  MrEntry entry;
  const void* const* params;
  const unsigned* sizes;
  unsigned count;
  unsigned grid[3];
  unsigned block[3];
  unsigned max_threads;
  unsigned long long shared_bytes;
  unsigned long long stream;
  /// The launching block and thread.
  unsigned from_block[3];
  unsigned from_thread[3];
  /// If an argument points into memory that ends with the launching block or thread: which memory, and the number of
  /// the argument, from 1 on.
  unsigned own_memory;
  unsigned own_argument;
};
static_assert(sizeof(MrChild) == 104, "");
static_assert(__builtin_offsetof(MrChild, count) == 24, "");
static_assert(__builtin_offsetof(MrChild, shared_bytes) == 56, "");
static_assert(__builtin_offsetof(MrChild, from_thread) == 84, "");

/// The values of MrChild::own_memory.
inline constexpr unsigned mr_no_own_memory = 0;
inline constexpr unsigned mr_own_shared = 1;
inline constexpr unsigned mr_own_local = 2;

/// The last refused launch from a kernel, for cudaGetLastError. `what` is a Refusal of cpu/dynamic_parallelism.h.
struct MrRefused {
  int error;
  unsigned what;
  unsigned long long value;
  unsigned long long limit;
  unsigned block[3];
  unsigned thread[3];
};
static_assert(sizeof(MrRefused) == 48, "");

/// Receives the launches of the blocks in one call of an entry.
struct MrLauncher {
  void (*launch)(MrLauncher* self, const MrChild* child);
  unsigned long long (*make_stream)(MrLauncher* self);
  MrRefused refused;
};
static_assert(sizeof(MrLauncher) == 64, "");
static_assert(__builtin_offsetof(MrLauncher, refused) == 16, "");

/// Values of MrChild::stream: CUDA's handles of the streams that exist without being created. Created streams have
/// numbers from mr_first_own_stream on.
inline constexpr unsigned long long mr_null_stream = 0;
inline constexpr unsigned long long mr_tail_stream = 3;
inline constexpr unsigned long long mr_fire_and_forget_stream = 4;
inline constexpr unsigned long long mr_first_own_stream = 16;

/// The cudaError_t values of MrRefused::error.
inline constexpr int mr_invalid_value = 1;
inline constexpr int mr_invalid_configuration = 9;
inline constexpr int mr_pending_count_exceeded = 69;

/// A module's variable. An image exports an array of them as `mr_variables`, which ends with a null name.
struct MrVariable {
  const char* name;
  void* address;
  unsigned long long bytes;
  unsigned is_const;
};
static_assert(sizeof(MrVariable) == 32, "");

/// The value of a texture or surface is a pointer to this.
/// The numbers of formats, filters, address modes and flags are those of native/protocol/protocol.json.
struct MrTexture {
  char* data;
  /// Bytes from row to row and from layer to layer.
  unsigned long long pitch;
  unsigned long long layer;
  /// At least 1 each.
  int width;
  int height;
  int depth;
  unsigned char format;
  unsigned char channels;
  unsigned char filter;
  unsigned char address[3];
  unsigned char flags;
  unsigned char element_bytes;
};
static_assert(sizeof(MrTexture) == 48, "");
static_assert(__builtin_offsetof(MrTexture, width) == 24, "");
static_assert(__builtin_offsetof(MrTexture, element_bytes) == 43, "");

/// What an access of MrRaces::access is. The order of an atomic access, one of C++'s memory orders, is in the higher
/// bits.
inline constexpr unsigned mr_race_write = 1;
inline constexpr unsigned mr_race_atomic = 2;
inline constexpr unsigned mr_race_order_shift = 4;

/// The events of MrRaces::event, and their values.
enum MrRaceEvent : unsigned {
  /// A block begins. The number of its threads.
  mr_race_begin_block,
  mr_race_end_block,
  /// All threads of the block have met.
  mr_race_barrier,
  /// Threads of a warp have met: the first thread of the warp, and the mask of the lanes.
  mr_race_warp,
  /// The thread reached a memory fence.
  mr_race_fence,
  /// The thread arrives at an object by which threads wait for each other, or goes on after it. Its address.
  mr_race_release,
  mr_race_acquire,
  /// The shim uses this memory: the address, and the number of bytes.
  mr_race_ignore,
};

/// Values of MrRaces::thread that are no thread's rank in its block: code of the shim, and code that runs once for all
/// threads.
inline constexpr unsigned mr_race_no_thread = 0xffffffffu;
inline constexpr unsigned mr_race_every_thread = 0xfffffffeu;

/// Receives the accesses to shared memory of the blocks in one call of an entry.
struct MrRaces {
  /// `place` is the address of the instruction behind the access. Does not return if there is a race, and the launch
  /// fails.
  void (*access)(MrRaces* self, const void* address, unsigned long long bytes, unsigned how, const void* place);
  /// An atomic access to any memory.
  void (*atomic)(MrRaces* self, const void* address, unsigned long long bytes, unsigned how, const void* place);
  void (*event)(MrRaces* self, unsigned event, unsigned long long first, unsigned long long second);
  /// The memory of `__shared__` variables, and of the dynamic shared memory.
  const char* variables;
  unsigned long long variable_bytes;
  const char* dynamic;
  unsigned long long dynamic_bytes;
  /// The thread that runs.
  unsigned thread;
};
static_assert(sizeof(MrRaces) == 64, "");
static_assert(__builtin_offsetof(MrRaces, variables) == 24, "");
static_assert(__builtin_offsetof(MrRaces, thread) == 56, "");
