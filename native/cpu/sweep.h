// Copies and fills of one range. A large one spreads over the pool: on fresh pages the faults of the first touch take
// longer than the bytes, and no single core reaches the memory's bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/spread.h"
#include "cpu/withdrawn.h"

namespace millrace::cpu {

/// What a visitor moves itself: less work than the wake of a thread that would do it.
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
/// Nothing, when either side was withdrawn.
void RunCopy(const Copy& copy, const Withdrawn& withdrawn);

class SpreadFill final : public Spread {
 public:
  SpreadFill(const Fill& fill, int32_t priority);
  [[nodiscard]] bool IsLight() const override { return false; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  const Fill fill_;
};

class SpreadCopy final : public Spread {
 public:
  SpreadCopy(const Copy& copy, int32_t priority, std::shared_ptr<const Withdrawn> withdrawn);
  [[nodiscard]] bool IsLight() const override { return false; }

 private:
  void RunBlocks(uint64_t first, uint64_t end) override;
  const Copy copy_;
  const std::shared_ptr<const Withdrawn> withdrawn_;
};

}  // namespace millrace::cpu
