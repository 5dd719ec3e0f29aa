// What a running kernel says when it launches another one. The layouts are shared with the text that kernels are
// compiled with (native/cpu/shim/device_runtime.h).
#pragma once

#include <cstdint>

namespace millrace::cpu {

struct CpuLaunch;
using EntryFunction = void (*)(const CpuLaunch*, unsigned long long first_block, unsigned long long end_block);

/// What a launch from a kernel may be refused for; what the fault report of one has as its dimension.
enum class Refusal : unsigned { kPending, kThreads, kBlock, kGrid, kShared };

/// Streams of a kernel that are none of its own making. Those have higher numbers.
inline constexpr unsigned long long kNullStream = 0;
inline constexpr unsigned long long kTailStream = 3;
inline constexpr unsigned long long kFireAndForgetStream = 4;
inline constexpr unsigned long long kFirstOwnStream = 16;

/// cudaError_t, as far as a launch from a kernel gives one.
inline constexpr int kInvalidValue = 1;
inline constexpr int kInvalidConfiguration = 9;
inline constexpr int kPendingCountExceeded = 69;

/// One launch. Pointers are valid during the call.
struct CpuChild {
  EntryFunction entry;
  const void* const* params;
  const unsigned* sizes;
  unsigned count;
  unsigned grid[3];
  unsigned block[3];
  unsigned max_threads;
  unsigned long long shared_bytes;
  unsigned long long stream;
  /// Who launches it.
  unsigned from_block[3];
  unsigned from_thread[3];
};

/// The last launch that was refused, for whoever asks with cudaGetLastError.
struct CpuRefused {
  int error;
  unsigned what;
  unsigned long long value;
  unsigned long long limit;
  unsigned block[3];
  unsigned thread[3];
};

/// Of the blocks that an entry is called for.
struct CpuLauncher {
  void (*launch)(CpuLauncher* self, const CpuChild* child);
  unsigned long long (*make_stream)(CpuLauncher* self);
  CpuRefused refused;
};

}  // namespace millrace::cpu
