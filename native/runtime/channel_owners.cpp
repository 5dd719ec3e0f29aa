// Threads that share a device which another thread opened, and what happens to their streams and memory when they go:
// by closing, by an exception, or by worker.terminate() at any moment.
//
// A thread that has left submits nothing. What it submitted before runs to its end, since streams of other threads may
// wait for it. The last of its streams that ends frees the memory and the events that the thread had not freed.

#include <utility>

#include "runtime/channel.h"

namespace millrace {

void Channel::OwnerLeft(uint32_t owner_id, std::function<void()> told) {
  auto shared = std::make_shared<std::function<void()>>(std::move(told));
  if (!inbox_.Post([this, owner_id, shared] { EndOwner(owner_id, std::move(*shared)); })) (*shared)();
}

void Channel::EndOwner(uint32_t owner_id, std::function<void()> told) {
  auto [left, open] = submissions_.StreamsOf(owner_id);
  // On a lost device no record is issued any more, and everything goes with it.
  if (loss_.is_lost() || (left.empty() && !tables_.owned.HasAny(owner_id))) {
    told();
    return;
  }
  if (left.empty()) {
    // Its streams are closed, and memory is left: one more stream frees it.
    const int64_t index = ReserveStream(nullptr, owner_id);
    if (index < 0) {
      awaiting_slot_.emplace_back(owner_id, std::move(told));
      return;
    }
    left.push_back(FindStream(static_cast<uint32_t>(index)));
    open = left;
  }
  Leaving& leaving = leaving_[owner_id];
  leaving.streams = static_cast<uint32_t>(left.size());
  leaving.told.push_back(std::move(told));
  for (StreamState* const stream : left) {
    stream->SetOwner(nullptr);
    stream->has_owner_left = true;
  }
  for (StreamState* const stream : open) submissions_.SubmitOwn<protocol::StreamDestroyRecord>(*stream);
  // It may be held.
  for (StreamState* const stream : left) WakeStream(stream->index());
}

/// If the stream is the last one of a thread that left, submits the frees of what that left behind. False: nothing was.
bool Channel::FreeLeftBehind(StreamState& stream) {
  if (stream.owner_id == 0) return false;
  const auto leaving = leaving_.find(stream.owner_id);
  if (leaving == leaving_.end() || leaving->second.streams > 1) return false;
  if (!tables_.owned.HasAny(stream.owner_id)) return false;
  const OwnedHandles::Handles owned = tables_.owned.Take(stream.owner_id);
  // The thread may have ended between reserving the stream and creating it.
  if (stream.backend == nullptr) submissions_.SubmitOwn<protocol::StreamCreateRecord>(stream);
  // Streams of other devices may use the memory; this channel knows only their last uses.
  if (!owned.memory.empty()) {
    for (const auto& [device, target, ticket] : peers_.users.Unfinished()) {
      submissions_.SubmitOwn(stream, protocol::WaitRecord{.device = device, .target = target, .ticket = ticket});
    }
  }
  for (const uint32_t handle : owned.memory) submissions_.SubmitOwn(stream, protocol::FreeRecord{.handle = handle});
  for (const uint32_t handle : owned.events)
    submissions_.SubmitOwn(stream, protocol::FreeEventRecord{.handle = handle});
  submissions_.SubmitOwn<protocol::StreamDestroyRecord>(stream);
  return true;
}

void Channel::SlotFreed() {
  for (auto& [owner_id, told] : std::exchange(awaiting_slot_, {})) EndOwner(owner_id, std::move(told));
}

void Channel::OwnedStreamEnded(uint32_t owner_id) {
  if (owner_id == 0) return;
  const auto found = leaving_.find(owner_id);
  if (found == leaving_.end() || --found->second.streams > 0) return;
  const Leaving left = std::move(found->second);
  leaving_.erase(found);
  for (const auto& tell : left.told) tell();
}

void Channel::TellAllLeft() {
  for (const auto& [owner_id, leaving] : std::exchange(leaving_, {})) {
    for (const auto& tell : leaving.told) tell();
  }
  for (const auto& [owner_id, tell] : std::exchange(awaiting_slot_, {})) tell();
}

}  // namespace millrace
