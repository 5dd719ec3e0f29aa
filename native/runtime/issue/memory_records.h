// Issues the records that allocate, adopt, free and fill device memory.
#pragma once

#include <functional>
#include <memory>

#include "hal/hal.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/memory_entry.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class MemoryRecords {
 public:
  explicit MemoryRecords(const IssueParts& parts)
      : device_(parts.device),
        tables_(parts.tables),
        inbox_(parts.inbox),
        faults_(parts.faults),
        progress_(parts.progress),
        waits_(parts.waits),
        ends_(parts.ends),
        frees_(parts.frees) {}

  Outcome Alloc(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome AllocArray(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Adopt(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Free(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome Fill(StreamState& stream, Ticket ticket, RecordReader& reader);
  Outcome FillStrided(StreamState& stream, Ticket ticket, RecordReader& reader);

 private:
  Outcome AllocFromPool(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record);
  /// `make` runs on the blocking-calls thread.
  Outcome AllocOnBlockingThread(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record,
                                std::function<Result<std::unique_ptr<hal::Memory>>(hal::Device&)> make);
  Outcome FailAlloc(StreamState& stream, Ticket ticket, const protocol::AllocRecord& record, Status why);
  template <typename Call>
  Outcome FillEntry(StreamState& stream, Ticket ticket, MemoryEntry& entry, bool is_whole, Call call);

  DeviceAccess& device_;
  ResourceTables& tables_;
  ThreadInbox& inbox_;
  FaultReports& faults_;
  DeviceProgress& progress_;
  StreamWaits& waits_;
  RecordEnds& ends_;
  PendingFrees& frees_;
};

}  // namespace millrace
