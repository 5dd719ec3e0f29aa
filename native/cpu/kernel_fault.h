// Reasons why a kernel had to stop, and the first such report of a launch.
#pragma once

#include <atomic>
#include <cstdint>

#include "cpu/memory.h"
#include "cpu/race_detector.h"
#include "protocol/protocol.gen.h"

namespace millrace::cpu {

/// The order is that of KERNEL_FAULTS in src/core/channel/build-spec.ts.
enum class KernelFault : uint32_t {
  kNone,
  kStack,        // The thread's stack overflowed.
  kMemory,       // The threads of a block need more memory than there is.
  kAddress,      // The kernel accessed memory that is not mapped, or not for that use.
  kNoAddress,    // The kernel used a non-canonical address, whose value the processor does not report.
  kInstruction,  // The kernel reached a trap or an invalid instruction.
  kSpin,         // A thread waited in a loop for another thread, for too long.
  kShared,       // The kernel accessed memory before or behind its dynamic shared memory.
  kNoHandler,    // The system refused what the thread needs to survive a kernel's faults, so none ran.
  kVariables,    // The kernel accessed memory before or behind its `__shared__` or local variables.
  kGuard,        // The kernel accessed memory around an array. Its report is GridCall's.
  kRace,         // Two threads of a block raced for shared memory. Its report is GridCall's.
  kShuffle,      // Threads of a tile called `shfl` with different source ranks. Its report is GridCall's.
};

/// FaultSlot::parameter of a report that a kernel had to stop. `dimension` is the KernelFault, `index` the address or
/// the exceeded limit in bytes, and `limit` the number of blocks that ran together, one of which failed; 0 if the block
/// is unknown.
inline constexpr uint32_t kKernelFaultParameter = 0xfffffffd;

/// CUDA loses the device at each of these faults. Here, a kernel that only exceeded a resource limit fails its launch.
constexpr bool LosesDevice(KernelFault fault) {
  return fault == KernelFault::kAddress || fault == KernelFault::kNoAddress || fault == KernelFault::kInstruction;
}

/// FaultSlot::thread_x of a report with kGuard if no parameter is a pointer into the array.
inline constexpr uint32_t kNoParameter = UINT32_MAX;

/// FaultSlot::thread_x and thread_y of a report with kRace or kShuffle are the positions of the two threads; with kRace
/// and code that runs once for all threads of a block, this.
inline constexpr uint32_t kEveryThreadPosition = UINT32_MAX;

/// Why a kernel was aborted.
struct KernelExit {
  KernelFault fault = KernelFault::kNone;
  uint64_t detail = 0;         // The address, or the limit in bytes.
  bool is_found_late = false;  // Which block did it is unknown.
  StrayByte stray = {};
  RaceReport race = {};
  MrShuffle shuffle = {};
};

/// The fault of a launch and its child launches. The first report counts; later blocks do not run.
class LaunchFault {
 public:
  /// The failing block is one of the `blocks` blocks along x from `block`. Thread: any, several at a time.
  void Note(const KernelExit& exit, const uint32_t (&block)[3], uint64_t blocks) {
    uint32_t none = 0;
    if (!state_.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
    exit_ = exit;
    blocks_ = blocks;
    for (int axis = 0; axis < 3; ++axis) block_[axis] = block[axis];
  }
  /// Before another run of the launch.
  void Clear() { state_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] bool IsNoted() const { return state_.load(std::memory_order_relaxed) != 0; }
  /// Thread: the one that finishes the launch, after all blocks.
  [[nodiscard]] KernelFault fault() const { return exit_.fault; }
  [[nodiscard]] uint64_t detail() const { return exit_.detail; }
  [[nodiscard]] const StrayByte& stray() const { return exit_.stray; }
  [[nodiscard]] const RaceReport& race() const { return exit_.race; }
  [[nodiscard]] const MrShuffle& shuffle() const { return exit_.shuffle; }
  [[nodiscard]] protocol::FaultSlot Report() const {
    protocol::FaultSlot report{};
    report.parameter = kKernelFaultParameter;
    report.dimension = static_cast<uint32_t>(exit_.fault);
    report.index = static_cast<int64_t>(exit_.detail);
    report.limit = static_cast<uint32_t>(blocks_);
    report.block_x = block_[0];
    report.block_y = block_[1];
    report.block_z = block_[2];
    return report;
  }

 private:
  std::atomic<uint32_t> state_{0};
  KernelExit exit_;
  uint32_t block_[3] = {0, 0, 0};
  uint64_t blocks_ = 1;
};

}  // namespace millrace::cpu
