// Threads that share a device which another thread opened, and what happens to their streams and memory when they go:
// by closing, by an exception, or by worker.terminate() at any moment.
//
// A thread that has left submits nothing. What it submitted before runs to its end, since streams of other threads may
// wait for it. The last of its streams that ends frees the memory and the events that the thread had not freed.

#include <cstring>
#include <utility>

#include "runtime/channel.h"

namespace millrace {

void Channel::OwnerLeft(uint32_t owner_id, std::function<void()> told) {
  auto shared = std::make_shared<std::function<void()>>(std::move(told));
  if (!Post([this, owner_id, shared] { EndOwner(owner_id, std::move(*shared)); })) (*shared)();
}

void Channel::EndOwner(uint32_t owner_id, std::function<void()> told) {
  std::vector<StreamState*> left;
  std::vector<StreamState*> open;
  {
    std::lock_guard lock(ring_.producer_mutex());
    for (uint32_t n = 0; n < stream_count_.load(); ++n) {
      StreamState* const stream = streams_[n].load();
      if (!stream->is_reserved || stream->owner_id != owner_id) continue;
      left.push_back(stream);
      if (!stream->is_ending) open.push_back(stream);
    }
  }
  // On a lost device no record is issued any more, and everything goes with it.
  if (LostStatus() != StatusCode::kOk || (left.empty() && !OwnsAnything(owner_id))) {
    told();
    return;
  }
  if (left.empty()) {
    // Its streams are closed, and memory is left: one more stream frees it.
    const int64_t index = ReserveStream(nullptr, owner_id);
    if (index < 0) {
      owners_.awaiting_slot.emplace_back(owner_id, std::move(told));
      return;
    }
    left.push_back(FindStream(static_cast<uint32_t>(index)));
    open = left;
  }
  Owners::Leaving& leaving = owners_.leaving[owner_id];
  leaving.streams = static_cast<uint32_t>(left.size());
  leaving.told.push_back(std::move(told));
  for (StreamState* const stream : left) {
    stream->SetOwner(nullptr);
    stream->has_owner_left = true;
  }
  for (StreamState* const stream : open) SubmitOwn<protocol::StreamDestroyRecord>(*stream);
  // It may be held.
  for (StreamState* const stream : left) WakeStream(stream->index());
}

bool Channel::OwnsAnything(uint32_t owner_id) {
  const auto found = owners_.owned.find(owner_id);
  if (found == owners_.owned.end()) return false;
  if (!found->second.memory.empty() || !found->second.events.empty()) return true;
  owners_.owned.erase(found);
  return false;
}

/// Like Submit, of a stream that takes no other records any more.
template <typename Body>
void Channel::SubmitOwn(StreamState& stream, Body record) {
  const protocol::RecordHeader header{static_cast<uint16_t>(Body::kOpcode), 0, sizeof(Body), stream.index(), 0};
  std::memcpy(&record, &header, sizeof(header));
  std::lock_guard lock(ring_.producer_mutex());
  stream.is_ending = true;
  ++submitted_;
  ++stream.last_ticket;
  ring_.Publish(std::as_bytes(std::span(&record, 1)));
}

/// If the stream is the last one of a thread that left, submits the frees of what that left behind. False: nothing was.
bool Channel::FreeLeftBehind(StreamState& stream) {
  if (stream.owner_id == 0) return false;
  const auto leaving = owners_.leaving.find(stream.owner_id);
  if (leaving == owners_.leaving.end() || leaving->second.streams > 1) return false;
  if (!OwnsAnything(stream.owner_id)) return false;
  const Owners::Owned owned = std::move(owners_.owned.extract(stream.owner_id).mapped());
  // The thread may have ended between reserving the stream and creating it.
  if (stream.backend == nullptr) SubmitOwn<protocol::StreamCreateRecord>(stream);
  // Streams of other devices may use the memory; this channel knows only their last uses.
  if (!owned.memory.empty()) {
    for (const auto& [device, target, ticket] : peer_users_.Unfinished()) {
      SubmitOwn(stream, protocol::WaitRecord{.device = device, .target = target, .ticket = ticket});
    }
  }
  for (const uint32_t handle : owned.memory) SubmitOwn(stream, protocol::FreeRecord{.handle = handle});
  for (const uint32_t handle : owned.events) SubmitOwn(stream, protocol::FreeEventRecord{.handle = handle});
  SubmitOwn<protocol::StreamDestroyRecord>(stream);
  return true;
}

void Channel::SlotFreed() {
  for (auto& [owner_id, told] : std::exchange(owners_.awaiting_slot, {})) EndOwner(owner_id, std::move(told));
}

void Channel::OwnedStreamEnded(uint32_t owner_id) {
  if (owner_id == 0) return;
  const auto found = owners_.leaving.find(owner_id);
  if (found == owners_.leaving.end() || --found->second.streams > 0) return;
  const Owners::Leaving left = std::move(found->second);
  owners_.leaving.erase(found);
  for (const auto& tell : left.told) tell();
}

void Channel::TellAllLeft() {
  for (const auto& [owner_id, leaving] : std::exchange(owners_.leaving, {})) {
    for (const auto& tell : leaving.told) tell();
  }
  for (const auto& [owner_id, tell] : std::exchange(owners_.awaiting_slot, {})) tell();
}

void Channel::Own(const StreamState& stream, uint32_t memory) {
  if (stream.owner_id != 0) owners_.owned[stream.owner_id].memory.insert(memory);
}

void Channel::OwnEvent(const StreamState& stream, uint32_t event) {
  if (stream.owner_id != 0) owners_.owned[stream.owner_id].events.insert(event);
}

}  // namespace millrace
