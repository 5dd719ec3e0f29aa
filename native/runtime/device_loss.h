// Whether a device is lost: by a fault of the driver, because it closed, or because its thread was ended. On a lost
// device nothing is issued any more.
#pragma once

#include <atomic>

#include "hal/hal.h"

namespace millrace {

class PeerRoutes;
class ResourceTables;
class StreamTable;
class ThreadInbox;

/// Atomics, no lock. Thread: any.
class DeviceLoss {
 public:
  DeviceLoss(StreamTable& streams, ResourceTables& tables, PeerRoutes& routes, ThreadInbox& inbox)
      : streams_(streams), tables_(tables), routes_(routes), inbox_(inbox) {}

  /// Why it was lost; kOk while it is not.
  [[nodiscard]] StatusCode status() const { return status_.load(std::memory_order_acquire); }
  /// The driver's code of the loss; 0 if there is none.
  [[nodiscard]] int32_t driver_code() const { return driver_code_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_lost() const { return status() != StatusCode::kOk; }
  /// Wakes all who wait for something of this device; only the first call does anything.
  void Mark(Status why);

 private:
  alignas(64) std::atomic<StatusCode> status_{StatusCode::kOk};
  std::atomic<int32_t> driver_code_{0};  // Stored before status_.
  StreamTable& streams_;
  ResourceTables& tables_;
  PeerRoutes& routes_;
  ThreadInbox& inbox_;
};

}  // namespace millrace
