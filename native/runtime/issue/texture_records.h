// Issues the records that make textures and surfaces, and copies to and from their memory.
//
// A texture is bound like memory, so launches take its value as they take addresses, and FREE ends it. The memory
// behind it has a handle of its own, which launches name as well: launches are ordered and poisoned by that handle.
#pragma once

#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class TextureRecords {
 public:
  explicit TextureRecords(const IssueParts& parts)
      : device_(parts.device), tables_(parts.tables), faults_(parts.faults), waits_(parts.waits), ends_(parts.ends) {}

  Outcome Create(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Copy(StreamState& stream, Ticket ticket, RecordReader& reader);

 private:
  DeviceAccess& device_;
  ResourceTables& tables_;
  FaultReports& faults_;
  StreamWaits& waits_;
  RecordEnds& ends_;
};

}  // namespace millrace
