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
  /// Makes the stream that the driver has refused before. A refusal may be one for want of memory, and streams of the
  /// library's own have no other chance.
  Status CreateRefused(StreamState& stream);
  Outcome Destroy(StreamState& stream, Ticket ticket);
  Outcome Wait(StreamState& stream, Ticket ticket, RecordReader& reader);
  /// Until the owner releases it.
  Outcome Hold(StreamState& stream, Ticket ticket);
  Outcome Nop(StreamState& stream, Ticket ticket);

 private:
  Status Make(StreamState& stream, const hal::StreamRequest& request);

  Channel& channel_;
  DeviceAccess& device_;
  SubmissionQueue& submissions_;
  OwnerCleanup& owners_;
  FaultReports& faults_;
  StreamWaits& waits_;
  RecordEnds& ends_;
};

}  // namespace millrace
