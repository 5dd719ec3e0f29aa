// The counters that a channel reports for diagnosis.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/stream_state.h"

namespace millrace {

struct ParkedStream {
  uint32_t stream;
  ParkReason reason;
  uint64_t deferred;  // Records submitted and not issued.
};

struct ChannelStats {
  uint64_t pending_records = 0;
  uint64_t ring_bytes = 0;
  uint64_t live_memory = 0;
  uint64_t live_bytes = 0;
  uint64_t staging_bytes = 0;  // Of these, what copies hold for a moment.
  uint64_t pinned_bytes = 0;   // Host memory that is page-locked.
  uint32_t streams = 0;
  std::vector<ParkedStream> parked;
};

}  // namespace millrace
