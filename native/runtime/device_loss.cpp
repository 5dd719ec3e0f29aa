#include "runtime/device_loss.h"

#include "runtime/peers.h"
#include "runtime/resource_tables.h"
#include "runtime/stream_table.h"
#include "runtime/thread_inbox.h"

namespace millrace {

void DeviceLoss::Mark(Status why) {
  int32_t no_code = 0;
  driver_code_.compare_exchange_strong(no_code, why.driver_code(), std::memory_order_relaxed);
  StatusCode none = StatusCode::kOk;
  if (!status_.compare_exchange_strong(none, why.code())) return;
  for (uint32_t n = 0; n < streams_.count(); ++n) streams_.At(n).WakeAll();
  // Streams of other channels wait for what never comes.
  tables_.WakeAll();
  routes_.WakeAll();
  inbox_.Ring();
}

}  // namespace millrace
