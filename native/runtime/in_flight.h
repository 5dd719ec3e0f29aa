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
  MemoryEntry* entry = nullptr;
  Use use = Use::kRead;
};
struct HostUse {
  HostRange range;
  bool is_write = false;
  uint32_t reported = 0;  // From the header of its record.
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
  FailureId order = 0;  // Among the records of all devices: the id of its own failure.
  hal::Ticket ticket = 0;
  uint32_t kernel = 0;
  FailureId failure = 0;  // The first failure of those that made it fail; 0 as long as none is known.
  protocol::FaultSlot* slot = nullptr;
  bool may_fail = false;
  // A plain record uses only memory of its own device, which counts it (MemoryEntry::in_flight). Others keep it.
  bool is_plain = true;
  bool must_ask = false;  // No fault word of its device tells of everything that it may fail for.
  uint32_t use_count = 0;
  std::vector<MemoryUse> uses;  // The first use_count; the rest is room that an earlier record needed.

  // Of records that are not plain.
  std::shared_ptr<GraphFaults> graph;
  std::vector<MemoryRef> held;
  std::vector<HostUse> host;

  [[nodiscard]] std::span<const MemoryUse> memory() const { return {uses.data(), use_count}; }
  /// Where its uses of memory are to be written.
  [[nodiscard]] MemoryUse* Room(size_t most) {
    if (uses.size() < most) uses.resize(most);
    return uses.data();
  }
  void BecomePlain();
};

/// A queue whose records keep their vectors' memory when they are used again. Its thread changes it, with the lock of
/// FaultReports; what is behind the last record is its thread's alone.
class InFlightQueue {
 public:
  /// It is full only at a multiple of this size.
  static constexpr size_t kStep = 32;

  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] InFlight& At(size_t n) { return records_[(first_ + n) & (records_.size() - 1)]; }
  [[nodiscard]] InFlight& front() { return At(0); }
  [[nodiscard]] bool IsFull() const { return count_ == records_.size(); }
  void Grow();
  /// Behind the last record: a plain one with the values of an earlier one. It must not be full.
  [[nodiscard]] InFlight& Next() { return At(count_); }
  /// What Next returned is the last record.
  void Push() { ++count_; }
  void Pop() {
    first_ = (first_ + 1) & (records_.size() - 1);
    --count_;
  }
  void Clear();
  /// The record with this ticket; null if there is none.
  [[nodiscard]] InFlight* Find(hal::Ticket ticket);

 private:
  std::vector<InFlight> records_;  // A power of two, or none.
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace millrace
