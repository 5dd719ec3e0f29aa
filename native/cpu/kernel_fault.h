// Why a kernel could not go on, and where the first report of it is kept while its launch ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "protocol/protocol.gen.h"

namespace millrace::cpu {

/// The order is that of KERNEL_FAULTS in src/core/channel/build.ts.
enum class KernelFault : uint32_t {
  kNone,
  kStack,        // The stack of the thread that runs it overflowed.
  kMemory,       // The waiting threads of a block need more memory than they may have.
  kAddress,      // It used memory that is not mapped, or not for that use.
  kNoAddress,    // It used an address that no memory can have, which the processor does not tell.
  kInstruction,  // It reached a trap, or what is no instruction.
};

/// FaultSlot::parameter of a report that a kernel could not go on. Its dimension is the KernelFault; its index the
/// address, or what was the limit in bytes; its limit says how many blocks ran together, of which one is meant.
inline constexpr uint32_t kKernelFaultParameter = 0xfffffffd;

/// CUDA loses the device at each of these. Here a kernel that only needed too much costs its launch.
constexpr bool LosesDevice(KernelFault fault) {
  return fault == KernelFault::kAddress || fault == KernelFault::kNoAddress || fault == KernelFault::kInstruction;
}

/// What a kernel was left for.
struct KernelExit {
  KernelFault fault = KernelFault::kNone;
  uint64_t detail = 0;  // The address, or the limit in bytes.
};

/// Of one launch and what its kernels launch. The first report counts; blocks that have not begun then do not run.
class LaunchFault {
 public:
  /// One of `blocks` from `block` on, along x. Thread: any, several at a time.
  void Note(const KernelExit& exit, const uint32_t (&block)[3], uint64_t blocks) {
    uint32_t none = 0;
    if (!state_.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
    exit_ = exit;
    blocks_ = blocks;
    for (int axis = 0; axis < 3; ++axis) block_[axis] = block[axis];
  }
  [[nodiscard]] bool IsNoted() const { return state_.load(std::memory_order_relaxed) != 0; }
  /// Thread: the one that ends the launch, when all blocks are over.
  [[nodiscard]] KernelFault fault() const { return exit_.fault; }
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
