// The records of one stream that may not have completed: what each reads and writes, and where it would report a fault.
//
// A fault becomes known only when its kernel has run. Until then, later records were issued as if it had succeeded.
// FaultReports then walks forward through the records in flight, in the order in which they were issued, and fails
// those that read what the failed record should have written. Everything that a record derives from has completed
// before the record completes. So a record is dropped when it has completed and all reports up to then are failures.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hal/hal.h"
#include "runtime/graph_faults.h"
#include "runtime/host_entry.h"
#include "runtime/memory_entry.h"

namespace millrace {

/// How a record uses memory. A record reads before it writes.
enum class Use : uint8_t {
  kRead = 1,
  kWrite = 2,
  kReadWrite = 3,
  kOverwrite = 6,  // Writes all of it, and reads nothing of it.
};
constexpr bool IsUsed(Use use, Use how) {
  return (static_cast<uint8_t>(use) & static_cast<uint8_t>(how)) == static_cast<uint8_t>(how);
}
struct MemoryUse {
  MemoryRef* entry = nullptr;
  Use use = Use::kRead;
};
struct HostUse {
  HostRange range;
  bool is_write = false;
};

/// A record that is about to be issued.
struct Entering {
  hal::Ticket ticket = 0;
  std::span<const MemoryUse> memory;
  std::span<const HostUse> host = {};
  uint32_t kernel = 0;                                  // 0: no launch of a kernel.
  protocol::FaultSlot* slot = nullptr;                  // Null if it reports nothing there.
  const std::shared_ptr<GraphFaults>* graph = nullptr;  // Of a launch of a graph; it is null if no node reports.
  bool may_fail = false;                                // After it was issued.
  bool is_foreign = false;                              // It uses memory of another device.
};

struct InFlight {
  struct Memory {
    MemoryEntry* entry = nullptr;
    Use use = Use::kRead;
  };

  uint64_t order = 0;  // Among the records of all devices.
  hal::Ticket ticket = 0;
  uint32_t kernel = 0;
  uint32_t failure = 0;  // The first failure of those that made it fail; 0 as long as none is known.
  bool may_fail = false;
  bool must_ask = false;  // No fault word of its device tells of everything that it may fail for.
  protocol::FaultSlot* slot = nullptr;
  std::shared_ptr<GraphFaults> graph;
  std::vector<Memory> memory;
  // A plain record uses only memory of its own device, which counts it (MemoryEntry::in_flight). Others keep it.
  bool is_plain = true;
  std::vector<MemoryRef> held;
  std::vector<HostUse> host;
};

/// A queue whose records keep their vectors' memory when they are used again. Guarded by the lock of FaultReports.
class InFlightQueue {
 public:
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] InFlight& At(size_t n) { return records_[(first_ + n) & (records_.size() - 1)]; }
  [[nodiscard]] InFlight& front() { return At(0); }
  /// A record with the values of an earlier one.
  [[nodiscard]] InFlight& Push() {
    if (count_ == records_.size()) Grow();
    return At(count_++);
  }
  void Pop() {
    first_ = (first_ + 1) & (records_.size() - 1);
    --count_;
  }
  /// Drops the record of the last Push.
  void Drop() { --count_; }
  void Clear();
  /// The record with this ticket; null if there is none.
  [[nodiscard]] InFlight* Find(hal::Ticket ticket);

 private:
  void Grow();

  std::vector<InFlight> records_;  // A power of two, or none.
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace millrace
