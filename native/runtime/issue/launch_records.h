// Issues kernel launches.
#pragma once

#include <cstdint>
#include <vector>

#include "hal/hal.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/memory_entry.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class LaunchRecords {
 public:
  explicit LaunchRecords(const IssueParts& parts)
      : channel_(parts.channel),
        device_(parts.device),
        tables_(parts.tables),
        faults_(parts.faults),
        waits_(parts.waits),
        ends_(parts.ends) {}

  Outcome Launch(StreamState& stream, Ticket ticket, RecordReader& reader) {
    return Issue<false>(stream, ticket, reader);
  }

 private:
  /// `kLooksElsewhere`: it uses memory that is not of its device. Such a launch begins anew, so that others pay
  /// nothing.
  template <bool kLooksElsewhere>
  Outcome Issue(StreamState& stream, Ticket ticket, RecordReader& reader);

  Channel& channel_;
  DeviceAccess& device_;
  ResourceTables& tables_;
  FaultReports& faults_;
  StreamWaits& waits_;
  RecordEnds& ends_;
  // Of the launch that is being issued; they keep their memory.
  std::vector<uint64_t> bytes_;       // Of its parameters by value.
  std::vector<hal::WideParam> wide_;  // These.
};

}  // namespace millrace
