// The interface through which a kernel launches kernels. The compiled kernels share these layouts
// (native/cpu/shim/device_runtime.h).
#pragma once

#include <cstdint>

namespace millrace::cpu {

struct CpuLaunch;
using EntryFunction = void (*)(const CpuLaunch*, unsigned long long first_block, unsigned long long end_block);

/// Why a launch from a kernel was refused; `dimension` of its fault report.
enum class Refusal : unsigned { kPending, kThreads, kBlock, kGrid, kShared };

/// Streams that exist without being created. Created streams have higher numbers.
inline constexpr unsigned long long kNullStream = 0;
inline constexpr unsigned long long kTailStream = 3;
inline constexpr unsigned long long kFireAndForgetStream = 4;
inline constexpr unsigned long long kFirstOwnStream = 16;

/// The cudaError_t values of a launch from a kernel.
inline constexpr int kInvalidValue = 1;
inline constexpr int kInvalidConfiguration = 9;
inline constexpr int kPendingCountExceeded = 69;

/// One launch from a kernel. The pointers are valid during the call.
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
  /// The launching block and thread.
  unsigned from_block[3];
  unsigned from_thread[3];
};

/// The last refused launch, for cudaGetLastError.
struct CpuRefused {
  int error;
  unsigned what;
  unsigned long long value;
  unsigned long long limit;
  unsigned block[3];
  unsigned thread[3];
};

/// Receives the launches of the blocks in one call of an entry point.
struct CpuLauncher {
  void (*launch)(CpuLauncher* self, const CpuChild* child);
  unsigned long long (*make_stream)(CpuLauncher* self);
  CpuRefused refused;
};

}  // namespace millrace::cpu
