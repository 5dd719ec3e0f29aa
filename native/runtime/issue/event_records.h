// Issues the records of driver events: for timing, and for other processes.
#pragma once

#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class EventRecords {
 public:
  explicit EventRecords(const IssueParts& parts) : device_(parts.device), tables_(parts.tables), ends_(parts.ends) {}

  Outcome RecordEvent(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome FreeEvent(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome WaitEvent(StreamState& stream, Ticket ticket, RecordReader& reader);

 private:
  DeviceAccess& device_;
  ResourceTables& tables_;
  RecordEnds& ends_;
};

}  // namespace millrace
