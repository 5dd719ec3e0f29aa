// Issues COPY_BATCH records: several copies with one ticket, which fail together.

#include <algorithm>
#include <vector>

#include "runtime/fault_reports.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/copy_work.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"

namespace millrace {

Outcome CopyRecords::CopyBatch(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::CopyBatchRecord record;
  if (!reader.ReadFields(record) || record.count == 0 || record.count > protocol::kMaxBatchCopies)
    return ends_.FailMalformed(stream, ticket);
  std::vector<CopyWork> works(record.count);
  for (CopyWork& copy : works) {
    protocol::BatchedCopy entry;
    if (!reader.Read(entry) || entry.dst_device != device_.id() || entry.src_device != device_.id())
      return ends_.FailMalformed(stream, ticket);
    copy.bytes = entry.bytes;
    copy.flags = entry.flags;
    copy.told = record.header.told;
    copy.dst = {.home = &channel_,
                .device = device_.id(),
                .space = entry.dst_space,
                .handle = entry.dst_handle,
                .offset = entry.dst_offset};
    copy.src = {.home = &channel_,
                .device = device_.id(),
                .space = entry.src_space,
                .handle = entry.src_handle,
                .offset = entry.src_offset};
    for (CopyEnd* end : {&copy.dst, &copy.src}) {
      const Sight sight = FindEnd(stream, *end, copy);
      if (sight == Sight::kMalformed) return ends_.FailMalformed(stream, ticket);
      if (sight == Sight::kLater) return ParkOrFail(stream, ticket, *end, copy.Uses());
    }
  }
  std::vector<MemoryUse> memory;
  std::vector<HostUse> host;
  std::vector<hal::BatchedCopy> copies;
  uint32_t cause = 0;
  bool is_locked = true;
  for (const CopyWork& copy : works) {
    std::ranges::copy(copy.Memory(), std::back_inserter(memory));
    std::ranges::copy(copy.Host(), std::back_inserter(host));
    if (cause == 0) cause = copy.Cause();
    for (const CopyEnd* end : {&copy.dst, &copy.src}) is_locked &= end->entry != nullptr || end->host.is_page_locked;
    copies.push_back(
        {copy.dst.address, copy.src.address, copy.bytes, {.dst = copy.dst.Lease(), .src = copy.src.Lease()}});
  }
  // Nothing may be overwritten, in the notes of what is poisoned, before all reads were checked.
  std::ranges::stable_partition(memory, [](const MemoryUse& use) { return IsUsed(use.use, Use::kRead); });
  const Outputs outputs{.memory = memory, .host = host};
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;
  if (device_.needs_locked_memory() && !is_locked) {
    const Status status(StatusCode::kState,
                        "its host memory could not be page-locked, which a batch needs: make smaller arrays, or use "
                        "`copy`");
    return ends_.Fail(stream, ticket, {.status = status}, outputs);
  }
  if (const uint32_t found = faults_.Enter(stream, {.ticket = ticket, .memory = memory, .host = host}))
    return ends_.FailUpstream(stream, ticket, found, outputs);
  const Status status = stream.backend->CopyBatch(ticket, copies);
  return status.ok() ? Outcome::kIssued : ends_.FailDriver(stream, ticket, status, 0, outputs);
}

}  // namespace millrace
