// One allocation: its memory, and the failure that poisoned its contents.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/failure_id.h"

namespace millrace {

class StreamState;

/// Whether contents are poisoned, and by which failure. A record that overwrites all contents clears the poison when it
/// is issued (FaultReports::Enter). Thread: any; copies of other devices overwrite too.
class Poison {
 public:
  /// The id of the failure that poisoned the contents, or 0.
  [[nodiscard]] FailureId by() const { return failure_.load(std::memory_order_acquire); }
  void Set(FailureId failure) { failure_.store(failure, std::memory_order_release); }
  /// The first of several failures stays.
  void Add(FailureId failure) {
    FailureId known = 0;
    while (!failure_.compare_exchange_weak(known, failure, std::memory_order_acq_rel)) TakeFirst(failure, known);
  }
  void Clear() { failure_.store(0, std::memory_order_release); }

 private:
  std::atomic<FailureId> failure_{0};
};

struct MemoryEntry : std::enable_shared_from_this<MemoryEntry> {
  /// How many handles name it; the last FREE gives it back. Thread: its channel.
  uint32_t handles = 1;
  /// The FREE records of other handles: those threads' uses come before them. Thread: its channel.
  std::vector<std::pair<StreamState*, hal::Ticket>> freed_by;
  std::unique_ptr<hal::Memory> memory;  // Null when the allocation failed. Thread: its channel.
  // Other channels read these; they do not change once the handle is bound.
  std::byte* address = nullptr;  // Null when the allocation failed.
  uint64_t bytes = 0;            // The requested size.
  protocol::AllocKind kind = protocol::AllocKind::kPool;
  Poison poison;
  /// How many records in flight of its own device use it (in_flight.h). Thread: its channel.
  uint32_t in_flight = 0;
};
using MemoryRef = std::shared_ptr<MemoryEntry>;

}  // namespace millrace
