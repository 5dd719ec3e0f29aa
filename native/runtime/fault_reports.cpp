// More than 400 lines: all of one class.
#include "runtime/fault_reports.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/device_loss.h"
#include "runtime/stream_table.h"

namespace millrace {
namespace {

/// Records in flight that may fail. While there are none, a record that cannot fail need not be noted.
std::atomic<uint32_t> fallible{0};

}  // namespace

/// Host memory that a record of the stream should have written, and its failure was not reported to code.
struct FaultReports::Unreported {
  FaultReports* device = nullptr;
  StreamState* stream = nullptr;
  Ticket ticket = 0;
  HostRange range;
  FailureId failure = 0;
};

/// The open devices.
class FaultReports::Devices {
 public:
  /// Never destroyed: native threads may outlive every static object.
  static Devices& All() {
    static auto* all = new Devices;
    return *all;
  }

  std::mutex mutex;
  // Guarded by mutex.
  std::vector<FaultReports*> open;
  std::vector<Unreported> unreported;
  /// Avoids the lock while there are none.
  std::atomic<bool> has_unreported{false};
};

FaultReports::~FaultReports() {
  Devices& all = Devices::All();
  std::lock_guard lock(all.mutex);
  std::erase(all.open, this);
}

Status FaultReports::Reserve() {
  protocol::TimelineSlot& slot = streams_.first_slot();
  word_ = &slot.fault;
  asks_word_ = &slot.asks;
  Devices& all = Devices::All();
  {
    std::lock_guard lock(all.mutex);
    all.open.push_back(this);
  }
  return slots_.Reserve(device_.device());
}

protocol::FaultSlot* FaultReports::Take() {
  return slots_.Take(device_.device());
}

std::optional<GraphFaults::Slots> FaultReports::TakeForGraph(size_t count) {
  GraphFaults::Slots taken;
  while (taken.size() < count) {
    protocol::FaultSlot* const slot = slots_.Take(device_.device());
    if (slot == nullptr) {
      GiveBack(taken);
      return std::nullopt;
    }
    taken.push_back(slot);
  }
  return taken;
}

void FaultReports::GiveBack(const GraphFaults::Slots& slots) {
  for (protocol::FaultSlot* const slot : slots) slots_.GiveBack(slot);
}

void FaultReports::Clear() {
  Devices& all = Devices::All();
  std::lock_guard list(all.mutex);
  std::lock_guard lock(mutex_);
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    while (!stream.in_flight.empty()) Pop(stream);
    stream.in_flight.Clear();
  }
  std::erase_if(all.unreported, [&](const Unreported& each) {
    if (each.device == this) Forget(each);
    return each.device == this;
  });
  all.has_unreported.store(!all.unreported.empty());
  freed_.clear();
  slots_.Clear();
}

// ── Records in flight ──────────────────────────────────────────────────────────────────────────────────────────────

bool FaultReports::IsMissed(bool may_fail) {
  return !may_fail && fallible.load(std::memory_order_acquire) == 0;
}

void FaultReports::Overwrite(std::span<const MemoryUse> memory) {
  for (const auto& [entry, use] : memory) {
    if (IsUsed(use, Use::kOverwrite)) entry->poison.Clear();
  }
}

void FaultReports::Overwrite(std::span<const HostUse> host) {
  for (const HostUse& use : host) {
    if (use.is_write) use.range.Overwrite();
  }
}

void FaultReports::MakeRoom(StreamState& stream) {
  Retire(stream);
  if (!stream.in_flight.IsFull()) return;
  std::lock_guard lock(mutex_);
  stream.in_flight.Grow();
}

FailureId FaultReports::Enter(StreamState& stream, InFlight& next) {
  if (!IsMissed(next.may_fail)) return Note(stream, next);
  Overwrite(next.memory());
  return 0;
}

FailureId FaultReports::Enter(StreamState& stream, const Entering& record) {
  if (IsMissed(record.may_fail)) {
    Overwrite(record.memory);
    Overwrite(record.host);
    return 0;
  }
  InFlight& next = Next(stream);
  std::ranges::copy(record.memory, next.Room(record.memory.size()));
  next.use_count = static_cast<uint32_t>(record.memory.size());
  next.ticket = record.ticket;
  next.kernel = record.kernel;
  next.slot = record.slot;
  next.may_fail = record.may_fail;
  next.is_plain = record.host.empty() && record.graph == nullptr && !record.is_foreign;
  if (!next.is_plain) {
    if (record.graph != nullptr) next.graph = *record.graph;
    next.must_ask = record.is_foreign || (next.graph != nullptr && next.graph->word() != nullptr);
    for (const MemoryUse& use : record.memory) next.held.push_back(use.entry->shared_from_this());
    next.host.assign(record.host.begin(), record.host.end());
  }
  return Note(stream, next);
}

FailureId FaultReports::Note(StreamState& stream, InFlight& next) {
  FailureId cause = 0;
  std::lock_guard lock(mutex_);
  for (const auto& [entry, use] : next.memory()) {
    // A walk of another thread may have poisoned it just now.
    if (IsUsed(use, Use::kRead)) {
      TakeFirst(cause, entry->poison.by());
    } else if (IsUsed(use, Use::kOverwrite)) {
      entry->poison.Clear();
    }
  }
  if (!next.is_plain) {
    for (const HostUse& use : next.host) {
      if (!use.is_write) TakeFirst(cause, use.range.poisoned_by(use.reported));
    }
  }
  if (cause != 0) {
    if (!next.is_plain) next.BecomePlain();
    return cause;
  }
  if (!next.is_plain) {
    Overwrite(next.host);
    if (next.must_ask) AddAsking();
  }
  next.order = NextFailureId();
  if (next.may_fail) fallible.fetch_add(1, std::memory_order_release);
  if (next.is_plain) {
    for (const MemoryUse& use : next.memory()) ++use.entry->in_flight;
  }
  stream.in_flight.Push();
  return 0;
}

void FaultReports::KeepFreed(const MemoryRef& entry) {
  if (entry->in_flight > 0) freed_.push_back(entry);
}

void FaultReports::Pop(StreamState& stream) {
  InFlight& oldest = stream.in_flight.front();
  if (oldest.slot != nullptr) slots_.GiveBack(oldest.slot);
  if (oldest.may_fail) fallible.fetch_sub(1, std::memory_order_relaxed);
  oldest.failure = 0;
  if (oldest.is_plain) {
    for (const MemoryUse& use : oldest.memory()) --use.entry->in_flight;
  } else {
    if (oldest.must_ask) RemoveAsking();
    oldest.BecomePlain();
  }
  stream.in_flight.Pop();
}

void FaultReports::Retire(StreamState& stream) {
  // Only this thread adds and drops records. What has completed by now has written its reports.
  if (stream.in_flight.empty()) return;
  const Ticket completed = stream.Completed();
  if (stream.in_flight.front().ticket > completed) return;
  if (IsAnyReported()) Collect();
  std::lock_guard lock(mutex_);
  while (!stream.in_flight.empty() && stream.in_flight.front().ticket <= completed) Pop(stream);
  if (!freed_.empty()) std::erase_if(freed_, [](const MemoryRef& entry) { return entry->in_flight == 0; });
}

void FaultReports::End(StreamState& stream) {
  Retire(stream);
  // Otherwise a thread of JavaScript tells when it knows.
  if (stream.has_owner_left) Reported(stream, UINT64_MAX);
}

void FaultReports::RetireGraph(GraphFaults& faults) {
  const size_t completed = faults.CountCompleted();
  if (completed == 0) return;
  if (IsAnyReported()) Collect();
  faults.Drop(completed);
}

// ── Reports ────────────────────────────────────────────────────────────────────────────────────────────────────────

bool FaultReports::HasReport() const {
  return std::atomic_ref(*word_).load(std::memory_order_acquire) != 0;
}

bool FaultReports::HasWordOfGraph() {
  if (std::atomic_ref(*asks_word_).load(std::memory_order_acquire) == 0) return false;
  std::lock_guard lock(mutex_);
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    InFlightQueue& queue = streams_.At(n).in_flight;
    for (size_t at = 0; at < queue.size(); ++at) {
      const InFlight& record = queue.At(at);
      if (record.failure == 0 && record.graph != nullptr && record.graph->HasWord()) return true;
    }
  }
  return false;
}

bool FaultReports::IsAnyReported() {
  Devices& all = Devices::All();
  std::lock_guard lock(all.mutex);
  return std::ranges::any_of(all.open, [](FaultReports* each) { return each->HasReport() || each->HasWordOfGraph(); });
}

FaultReports::Locks FaultReports::LockAll(const std::vector<FaultReports*>& devices) {
  Locks locks;
  for (FaultReports* const each : devices) locks.emplace_back(each->mutex_);
  return locks;
}

void FaultReports::Collect() {
  Devices& all = Devices::All();
  std::lock_guard list(all.mutex);
  // Keep the words set until the reports are failures: an owner that saw a word cleared would treat the launch as a
  // success. A kernel that reports meanwhile sets its word to 1 again.
  constexpr uint32_t kCollecting = 2;
  const Locks locks = LockAll(all.open);
  for (FaultReports* const each : all.open) {
    if (each->HasReport()) std::atomic_ref(*each->word_).store(kCollecting, std::memory_order_seq_cst);
  }
  Walk(all.open, {});
  for (FaultReports* const each : all.open) {
    uint32_t collecting = kCollecting;
    std::atomic_ref(*each->word_).compare_exchange_strong(collecting, 0);
  }
}

void FaultReports::KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failed) {
  Failure failure{.first = ticket,
                  .last = ticket,
                  .status = failed.status,
                  .kernel = failed.kernel,
                  .node = failed.node,
                  .has_fault = true,
                  .fault = failed.report};
  {
    Devices& all = Devices::All();
    std::lock_guard list(all.mutex);
    const Locks locks = LockAll(all.open);
    InFlight* const record = stream.in_flight.Find(ticket);
    failure.id = record == nullptr ? NextFailureId() : record->order;
    if (record == nullptr) {
      stream.failures.Add(failure, stream.slot());
    } else if (record->failure == 0) {
      Walk(all.open, {.record = record, .failure = &failure});
    }
  }
  if (failed.status.code() == StatusCode::kDeviceLost) loss_.Mark(failed.status);
}

// ── Host memory ────────────────────────────────────────────────────────────────────────────────────────────────────

void FaultReports::PoisonHost(StreamState& stream, Ticket ticket, const HostRange& range, FailureId failure) {
  range.Poison(failure);
  if (range.state == nullptr || range.is_lasting) return;
  Devices& all = Devices::All();
  std::lock_guard list(all.mutex);
  std::lock_guard lock(mutex_);
  AddUnreported(stream, ticket, range, failure);
}

void FaultReports::AddUnreported(StreamState& stream, Ticket ticket, const HostRange& range, FailureId failure) {
  Devices& all = Devices::All();
  all.unreported.push_back({this, &stream, ticket, range, failure});
  all.has_unreported.store(true);
  AddAsking();
}

bool FaultReports::HasUnreported() {
  return Devices::All().has_unreported.load();
}

void FaultReports::Reported(StreamState& stream, Ticket through) {
  if (HasUnreported()) Report([&](const Unreported& each) { return each.stream == &stream && each.ticket <= through; });
}

void FaultReports::Reported(const HostRange& range) {
  Report([&](const Unreported& each) { return each.range.Overlaps(range); });
}

void FaultReports::Report(const std::function<bool(const Unreported&)>& is) {
  Devices& all = Devices::All();
  std::lock_guard list(all.mutex);
  const Locks locks = LockAll(all.open);
  std::erase_if(all.unreported, [&](const Unreported& each) {
    const bool is_reported = is(each);
    if (is_reported) Forget(each);
    return is_reported;
  });
  all.has_unreported.store(!all.unreported.empty());
}

void FaultReports::Forget(const Unreported& unreported) {
  const uint32_t reported = HostPoison::Report();
  unreported.range.Report(unreported.failure, reported);
  // A later walk finds it there.
  if (InFlight* const record = unreported.stream->in_flight.Find(unreported.ticket)) {
    for (HostUse& use : record->host) use.range.reported_at = reported;
  }
  unreported.device->RemoveAsking();
}

void FaultReports::AddAsking() {
  if (++asking_ == 1) std::atomic_ref(*asks_word_).store(1, std::memory_order_release);
}

void FaultReports::RemoveAsking() {
  if (--asking_ == 0) std::atomic_ref(*asks_word_).store(0, std::memory_order_release);
}

Status FaultReports::NoSlot() {
  return Status(StatusCode::kOutOfMemory, "no memory for fault reports");
}

Status FaultReports::Upstream() {
  return Status(StatusCode::kUpstream, "it reads what an earlier failure poisoned");
}

Status FaultReports::Gone() {
  return Status(StatusCode::kDeviceLost, "a device whose memory it uses is lost or closed");
}

// ── The walk over the records in flight ────────────────────────────────────────────────────────────────────────────

struct FaultReports::Tainted {
  struct Host {
    HostRange range;
    Sight writer;
    FailureId failure = 0;
  };
  std::unordered_map<MemoryEntry*, FailureId> memory;
  std::vector<Host> host;

  /// The first of the failures that poisoned what the record reads, or 0.
  [[nodiscard]] FailureId CauseOf(const InFlight& record) const {
    FailureId cause = 0;
    for (const auto& [entry, use] : record.memory()) {
      if (!IsUsed(use, Use::kRead)) continue;
      if (const auto found = memory.find(entry); found != memory.end()) TakeFirst(cause, found->second);
    }
    for (const HostUse& use : record.host) {
      if (use.is_write) continue;
      for (const Host& each : host) {
        if (use.reported >= each.range.reported_at || (each.range.is_lasting && !use.range.is_lasting)) continue;
        if (each.range.Overlaps(use.range)) TakeFirst(cause, each.failure);
      }
    }
    return cause;
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
  return {.id = record.order,
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
  for (const auto& [entry, failure] : tainted.memory) entry->poison.Add(failure);
  for (const Tainted::Host& each : tainted.host) {
    each.range.Poison(each.failure);
    if (each.range.is_lasting || each.range.reported_at != HostPoison::kUnreported) continue;
    each.writer.device->AddUnreported(*each.writer.stream, each.writer.record->ticket, each.range, each.failure);
  }
}

void FaultReports::Step(const Sight& sight, const Known& known, Tainted& tainted) {
  const auto& [device, stream, record, has_completed] = sight;
  // What failed before this walk has poisoned already what it wrote, and a record that is no longer in flight may have
  // overwritten that since.
  const bool is_known = record->failure != 0;
  if (!is_known) {
    if (const FailureId cause = tainted.CauseOf(*record); cause != 0) {
      const Failure failure{
          .id = record->order, .first = record->ticket, .last = record->ticket, .status = Upstream(), .cause = cause};
      stream->failures.Add(failure, stream->slot());
      record->failure = cause;
    } else if (record == known.record) {
      record->failure = stream->failures.Add(*known.failure, stream->slot());
    } else if (const std::optional<GraphFaults::Report> report = ReportOf(sight)) {
      record->failure = stream->failures.Add(FailureOf(*record, *report), stream->slot());
    }
  }
  const bool is_new = record->failure != 0 && !is_known;
  for (const auto& [entry, use] : record->memory()) {
    if (!IsUsed(use, Use::kWrite)) continue;
    if (is_new && IsUsed(use, Use::kOverwrite)) {
      tainted.memory.insert_or_assign(entry, record->failure);
    } else if (is_new) {
      TakeFirst(tainted.memory[entry], record->failure);
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
    if (is_new) tainted.host.push_back({use.range, sight, record->failure});
  }
}

}  // namespace millrace
