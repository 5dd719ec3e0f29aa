// The walk over the records in flight: it fails those that have a report, and those that derive from them.
#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/fault_reports.h"
#include "runtime/stream_table.h"

namespace millrace {

struct FaultReports::Tainted {
  struct Host {
    HostRange range;
    Sight writer;
    uint32_t failure = 0;
  };
  std::unordered_map<MemoryEntry*, uint32_t> memory;
  std::vector<Host> host;

  /// The failure that poisoned what the record reads, or 0.
  [[nodiscard]] uint32_t CauseOf(const InFlight& record) const {
    for (const auto& [entry, use] : record.memory()) {
      if (!IsUsed(use, Use::kRead)) continue;
      if (const auto found = memory.find(entry); found != memory.end()) return found->second;
    }
    for (const HostUse& use : record.host) {
      if (use.is_write) continue;
      for (const Host& each : host) {
        if (use.told >= each.range.told_at || (each.range.is_lasting && !use.range.is_lasting)) continue;
        if (each.range.Overlaps(use.range)) return each.failure;
      }
    }
    return 0;
  }
};

std::optional<GraphFaults::Report> FaultReports::ReportOf(const Sight& sight) {
  const auto& [device, stream, record, has_completed] = sight;
  if (record->graph != nullptr) return record->graph->ReportOf(*stream, record->ticket);
  if (record->slot == nullptr ||
      std::atomic_ref(record->slot->state).load(std::memory_order_acquire) != hal::kFaultWritten) {
    return std::nullopt;
  }
  return GraphFaults::Report{.node = {.node = hal::kNoNode, .kernel = record->kernel}, .fault = *record->slot};
}

Failure FaultReports::FailureOf(const InFlight& record, const GraphFaults::Report& report) {
  const bool is_copy = report.node.kernel == 0;
  return {.id = NextFailureId(),
          .first = record.ticket,
          .last = record.ticket,
          .status = is_copy ? Gone() : Status(StatusCode::kBounds, "an array access is out of bounds"),
          .kernel = report.node.kernel,
          .node = report.node.node,
          .has_fault = !is_copy,
          .fault = report.fault};
}

void FaultReports::Walk(const std::vector<FaultReports*>& devices, const Known& known) {
  std::vector<Sight> sights;
  uint64_t first = known.record == nullptr ? UINT64_MAX : known.record->order;
  // As long as no record that failed has completed, nothing that derives from one has. Of a polled device it is not
  // known which have. Streams advance meanwhile, so how far all of them are is read before it is asked of the failed.
  bool has_completed = false;
  for (FaultReports* const device : devices) {
    for (uint32_t n = 0; n < device->streams_.count(); ++n) {
      StreamState& stream = device->streams_.At(n);
      if (stream.in_flight.empty()) continue;
      const Ticket completed = stream.Completed();
      for (size_t at = 0; at < stream.in_flight.size(); ++at) {
        InFlight& record = stream.in_flight.At(at);
        sights.push_back({device, &stream, &record, record.ticket <= completed});
      }
    }
  }
  for (const Sight& sight : sights) {
    if (sight.record->failure != 0 || !ReportOf(sight)) continue;
    first = std::min(first, sight.record->order);
    has_completed |= sight.device->device_.needs_polling() || sight.stream->Completed() >= sight.record->ticket;
  }
  if (first == UINT64_MAX) return;
  std::erase_if(sights, [&](const Sight& sight) {
    return sight.record->order < first || (sight.has_completed && !has_completed);
  });
  std::ranges::sort(sights, {}, [](const Sight& sight) { return sight.record->order; });
  Tainted tainted;
  for (const Sight& sight : sights) Step(sight, known, tainted);
  for (const auto& [entry, failure] : tainted.memory) entry->poison.Set(failure);
  for (const Tainted::Host& each : tainted.host) {
    each.range.Poison(each.failure);
    if (each.range.is_lasting || each.range.told_at != HostPoison::kUntold) continue;
    each.writer.device->AddUntold(*each.writer.stream, each.writer.record->ticket, each.range, each.failure);
  }
}

void FaultReports::Step(const Sight& sight, const Known& known, Tainted& tainted) {
  const auto& [device, stream, record, has_completed] = sight;
  if (record->failure == 0) {
    if (const uint32_t cause = tainted.CauseOf(*record); cause != 0) {
      const Failure failure{
          .id = NextFailureId(), .first = record->ticket, .last = record->ticket, .status = Upstream(), .cause = cause};
      stream->failures.Add(failure, stream->slot());
      record->failure = cause;
    } else if (record == known.record) {
      record->failure = stream->failures.Add(*known.failure, stream->slot());
    } else if (const std::optional<GraphFaults::Report> report = ReportOf(sight)) {
      record->failure = stream->failures.Add(FailureOf(*record, *report), stream->slot());
    }
  }
  for (const auto& [entry, use] : record->memory()) {
    if (!IsUsed(use, Use::kWrite)) continue;
    if (record->failure != 0) {
      tainted.memory.insert_or_assign(entry, record->failure);
    } else if (IsUsed(use, Use::kOverwrite)) {
      tainted.memory.erase(entry);
    }
  }
  for (const HostUse& use : record->host) {
    if (!use.is_write) continue;
    // A later copy to other bytes of the range leaves the rest poisoned.
    std::vector<Tainted::Host> rest;
    for (const Tainted::Host& each : tainted.host) {
      for (const HostRange& part : each.range.Without(use.range)) rest.push_back({part, each.writer, each.failure});
    }
    tainted.host = std::move(rest);
    if (record->failure != 0) tainted.host.push_back({use.range, sight, record->failure});
  }
}

}  // namespace millrace
