// The frees for which an allocation without room waits: those that were issued and have not completed, and those that
// were submitted and not issued because their stream is parked.
//
// A parked stream may itself wait for the allocation. Then its free never comes, and the allocation fails. The waits
// between streams change as streams advance, so an allocation that waits for a parked free checks them again whenever a
// stream of the channel parks for a new reason and whenever a free is issued.

#include <algorithm>
#include <vector>

#include "runtime/channel.h"
#include "runtime/registry.h"

namespace millrace {

bool Channel::WaitsForFrees(StreamState& stream) {
  ForgetEndedFrees();
  // Wait for the next free of every stream. The first one to complete may give enough; otherwise wait for the next
  // ones.
  std::vector<StreamState*> seen;
  for (const auto& [freeing, ticket] : pending_frees_) {
    if (std::find(seen.begin(), seen.end(), freeing) != seen.end()) continue;
    seen.push_back(freeing);
    if (WaitsForEnd(stream, *freeing, ticket)) continue;
    WakeStream(stream.index());  // The free has completed meanwhile: try again at once.
    return true;
  }
  bool has_parked = false;
  for (uint32_t n = 0; n < streams_.count() && !has_parked; ++n) {
    StreamState& freeing = streams_.At(n);
    has_parked = &freeing != &stream && freeing.deferred_frees > 0 && GoesOnWithout(stream, freeing);
  }
  if (has_parked && std::find(awaiting_frees_.begin(), awaiting_frees_.end(), stream.index()) == awaiting_frees_.end())
    awaiting_frees_.push_back(stream.index());
  return has_parked || !seen.empty();
}

bool Channel::GoesOnWithout(const StreamState& allocating, StreamState& parked) {
  // Each step follows one wait. More steps than streams mean a cycle.
  StreamState* each = &parked;
  for (uint32_t steps = streams_.count(); steps > 0; --steps) {
    if (each == &allocating) return false;
    if (!each->HasDeferred()) return true;
    switch (each->park.load(std::memory_order_relaxed)) {
      case ParkReason::kMemory:
        return false;
      case ParkReason::kPoint:
        break;
      default:
        return true;  // It does not wait for a stream.
    }
    const Record record = each->FirstDeferred();
    RecordReader reader(record.bytes);
    protocol::WaitRecord wait;
    // It names memory that another stream has not allocated yet.
    if (record.opcode() != protocol::Opcode::kWait || !reader.Read(wait)) return false;
    const bool is_here = wait.device == id();
    const std::shared_ptr<Channel> other = is_here ? nullptr : Registry::Instance().Find(wait.device);
    StreamState* const target = is_here ? FindStream(wait.target) : other ? other->FindStream(wait.target) : nullptr;
    // Issued work completes by itself, and a device that is gone issues nothing more.
    if (target == nullptr || target->Issued() >= wait.ticket) return true;
    // This channel does not know why a stream of another channel waits.
    if (!is_here) return other->LostStatus() != StatusCode::kOk;
    each = target;
  }
  return false;
}

void Channel::LookForMemoryAgain() {
  for (const uint32_t stream : awaiting_frees_) WakeStream(stream);
  awaiting_frees_.clear();
}

void Channel::NotePendingFree(StreamState& stream, Ticket ticket) {
  constexpr size_t kPruneAt = 256;
  if (pending_frees_.size() >= kPruneAt) ForgetEndedFrees();
  pending_frees_.emplace_back(&stream, ticket);
  LookForMemoryAgain();
}

void Channel::ForgetEndedFrees() {
  std::erase_if(pending_frees_, [](const auto& pending) { return pending.first->Completed() >= pending.second; });
}

}  // namespace millrace
