#include "runtime/issue/pending_frees.h"

#include <algorithm>
#include <vector>

#include "runtime/channel.h"
#include "runtime/registry.h"

namespace millrace {

bool PendingFrees::WaitsFor(StreamState& stream) {
  ForgetEnded();
  // Wait for the next free of every stream. The first one to complete may give enough; otherwise wait for the next
  // ones.
  std::vector<StreamState*> seen;
  for (const auto& [freeing, ticket] : issued_) {
    if (std::find(seen.begin(), seen.end(), freeing) != seen.end()) continue;
    seen.push_back(freeing);
    if (waits_.WaitsForEnd(stream, *freeing, ticket)) continue;
    inbox_.Wake(stream);  // The free has completed meanwhile: try again at once.
    return true;
  }
  bool has_parked = false;
  for (uint32_t n = 0; n < streams_.count() && !has_parked; ++n) {
    StreamState& freeing = streams_.At(n);
    has_parked = &freeing != &stream && freeing.deferred.frees() > 0 && GoesOnWithout(stream, freeing);
  }
  if (has_parked) waits_.AwaitParkedFree(stream);
  return has_parked || !seen.empty();
}

/// Whether a stream with deferred records can go on although `allocating` does not, as far as can be told now.
bool PendingFrees::GoesOnWithout(const StreamState& allocating, StreamState& parked) {
  // Each step follows one wait. More steps than streams mean a cycle.
  StreamState* each = &parked;
  for (uint32_t steps = streams_.count(); steps > 0; --steps) {
    if (each == &allocating) return false;
    if (each->deferred.empty()) return true;
    switch (each->park.load(std::memory_order_relaxed)) {
      case ParkReason::kMemory:
        return false;
      case ParkReason::kPoint:
        break;
      default:
        return true;  // It does not wait for a stream.
    }
    const Record record = each->deferred.First();
    RecordReader reader(record);
    protocol::WaitRecord wait;
    // It names memory that another stream has not allocated yet.
    if (record.opcode() != protocol::Opcode::kWait || !reader.ReadFields(wait)) return false;
    const bool is_here = wait.device == device_.id();
    const std::shared_ptr<Channel> other = is_here ? nullptr : Registry::Instance().Find(wait.device);
    StreamState* const target = is_here ? streams_.Find(wait.target) : other ? other->FindStream(wait.target) : nullptr;
    // Issued work completes by itself, and a device that is gone issues nothing more.
    if (target == nullptr || target->Issued() >= wait.ticket) return true;
    // This channel does not know why a stream of another channel waits.
    if (!is_here) return other->LostStatus() != StatusCode::kOk;
    each = target;
  }
  return false;
}

void PendingFrees::Note(StreamState& stream, Ticket ticket) {
  constexpr size_t kPruneAt = 256;
  if (issued_.size() >= kPruneAt) ForgetEnded();
  issued_.emplace_back(&stream, ticket);
  waits_.WakeAwaitingFrees();
}

void PendingFrees::ForgetEnded() {
  std::erase_if(issued_, [](const auto& pending) { return pending.first->Completed() >= pending.second; });
}

}  // namespace millrace
