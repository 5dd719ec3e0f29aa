// Issues the records that make and destroy streams, wait for points of other streams, and hold a stream.
#pragma once

#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class StreamRecords {
 public:
  explicit StreamRecords(const IssueParts& parts)
      : channel_(parts.channel),
        device_(parts.device),
        submissions_(parts.submissions),
        owners_(parts.owners),
        faults_(parts.faults),
        waits_(parts.waits),
        ends_(parts.ends) {}

  Outcome Create(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Destroy(StreamState& stream, Ticket ticket);
  Outcome Wait(StreamState& stream, Ticket ticket, RecordReader& reader);
  /// Until the owner releases it.
  Outcome Hold(StreamState& stream, Ticket ticket);
  Outcome Nop(StreamState& stream, Ticket ticket);

 private:
  Channel& channel_;
  DeviceAccess& device_;
  SubmissionQueue& submissions_;
  OwnerCleanup& owners_;
  FaultReports& faults_;
  StreamWaits& waits_;
  RecordEnds& ends_;
};

}  // namespace millrace
