// Copies and fills of one range. Large ones run on several pool threads: on fresh pages, the faults of the first touch
// take longer than the copy, and a single core does not reach the memory bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/parallel_item.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// Work that a helper thread does itself, since waking another thread would take longer.
inline constexpr uint64_t kLightBytes = 4 << 10;
/// From this size on several threads pay off: 16 threads copied 64 MiB in 0.7 ms instead of 10.7 and 2 MiB in 80 us
/// instead of 160, but warm 1 MiB in 90 us instead of 30.
inline constexpr uint64_t kSweepBytes = 2 << 20;

/// `element_bytes` is 1, 2, 4 or 8; `dst` is aligned to it.
struct Fill {
  std::byte* dst;
  uint32_t element_bytes;
  uint64_t pattern;
  uint64_t count;
};

/// The ranges do not overlap.
struct Copy {
  std::byte* dst;
  const std::byte* src;
  uint64_t bytes;
};

void RunFill(const Fill& fill);
void RunCopy(const Copy& copy);

/// A copy that skips host memory which was withdrawn before, and reports that.
class HostCopy {
 public:
  HostCopy(const Copy& copy, const hal::HostLeases& host) : copy_(copy), host_(host) {}
  /// Of a graph: the slot for the reports of the next runs.
  void SetReport(protocol::FaultSlot* report) { host_.report = report; }
  /// Of a graph: the memory of the next runs.
  void SetDst(std::byte* dst) { copy_.dst = dst; }
  void SetSrc(const std::byte* src) { copy_.src = src; }
  [[nodiscard]] uint64_t bytes() const { return copy_.bytes; }
  void Run() const { RunPart(0, copy_.bytes); }
  /// Copies `bytes` bytes from offset `start`. Thread: any, several at a time.
  void RunPart(uint64_t start, uint64_t bytes) const;

 private:
  Copy copy_;
  hal::HostLeases host_;
};

class ParallelFill final : public ParallelItem {
 public:
  ParallelFill(const Fill& fill, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return false; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  const Fill fill_;
};

class ParallelCopy final : public ParallelItem {
 public:
  ParallelCopy(HostCopy copy, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return false; }
  [[nodiscard]] HostCopy& copy() { return copy_; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  HostCopy copy_;
};

/// Several copies, in any order. Few bytes are one block, which one thread copies.
class BatchCopy final : public ParallelItem {
 public:
  BatchCopy(std::span<const hal::BatchedCopy> copies, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return bytes_ <= kLightBytes; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  std::vector<HostCopy> copies_;
  std::vector<uint64_t> first_blocks_;  // Of each copy.
  uint64_t bytes_ = 0;
};

}  // namespace millrace::cpu
