// Copies and fills of one range. A large one spreads over the pool: on fresh pages the faults of the first touch take
// longer than the bytes, and no single core reaches the memory's bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/parallel_task.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// What a helper thread moves itself: less work than the wake of a thread that would do it.
inline constexpr uint64_t kLightBytes = 4 << 10;
/// From here on a range is worth more than one thread: 16 of them copied 64 MiB in 0.7 ms and not in 10.7, 2 MiB in 80
/// us and not in 160, but warm 1 MiB in 90 us and not in 30.
inline constexpr uint64_t kSweepBytes = 2 << 20;

/// `element_bytes` is 1, 2, 4 or 8; `dst` is aligned to it.
struct Fill {
  std::byte* dst;
  uint32_t element_bytes;
  uint64_t pattern;
  uint64_t count;
};

/// Ranges do not overlap.
struct Copy {
  std::byte* dst;
  const std::byte* src;
  uint64_t bytes;
};

void RunFill(const Fill& fill);
void RunCopy(const Copy& copy);

/// A copy that leaves host memory alone which was withdrawn before, and says so in its report.
class HostCopy {
 public:
  /// `slot` is the stream's.
  HostCopy(const Copy& copy, const hal::HostEnds& host, protocol::TimelineSlot& slot)
      : copy_(copy), host_(host), slot_(&slot) {}
  [[nodiscard]] uint64_t bytes() const { return copy_.bytes; }
  void Run() const { RunPart(0, copy_.bytes); }
  /// `bytes` bytes from `start` on. Thread: any, several at a time.
  void RunPart(uint64_t start, uint64_t bytes) const;

 private:
  Copy copy_;
  hal::HostEnds host_;
  protocol::TimelineSlot* slot_;
};

class ParallelFill final : public ParallelTask {
 public:
  ParallelFill(const Fill& fill, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return false; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  const Fill fill_;
};

class ParallelCopy final : public ParallelTask {
 public:
  ParallelCopy(HostCopy copy, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return false; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  const HostCopy copy_;
};

}  // namespace millrace::cpu
