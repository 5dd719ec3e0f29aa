// The slots in which checked launches, and copies of host memory whose owner may end, report a fault. A kernel that
// uses an index outside an array, or a copy that finds its memory gone, fills its slot before its ticket counts as
// completed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hal/hal.h"

namespace millrace {

/// The fault slots of one device. The first ones are made when it opens, because page-locking may wait for a running
/// kernel, and that kernel may wait for a record after the one that needs the slot. Thread: channel, after Reserve.
class FaultSlots {
 public:
  /// Thread: control, or channel when a flood of streams needs more.
  Status Reserve(hal::Device& device);
  /// Null if memory for slots cannot be allocated.
  [[nodiscard]] protocol::FaultSlot* Take(hal::Device& device);
  /// Empties it first, if it was written.
  void GiveBack(protocol::FaultSlot* slot);
  void Clear();

 private:
  /// Enough for 32 streams with a full window of checked launches: 1 MiB.
  static constexpr uint32_t kChunk = 32 * protocol::kStreamWindow;
  std::vector<std::unique_ptr<hal::Memory>> chunks_;
  std::vector<protocol::FaultSlot*> free_;
};

}  // namespace millrace
