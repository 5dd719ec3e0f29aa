#include "runtime/owner_cleanup.h"

#include <memory>
#include <utility>

namespace millrace {

void OwnerCleanup::OwnerLeft(uint32_t owner_id, std::function<void()> done) {
  auto shared = std::make_shared<std::function<void()>>(std::move(done));
  if (!inbox_.Post([this, owner_id, shared] { End(owner_id, std::move(*shared)); })) (*shared)();
}

void OwnerCleanup::End(uint32_t owner_id, std::function<void()> done) {
  auto [left, open] = submissions_.StreamsOf(owner_id);
  // On a lost device no record is issued any more, and everything goes with it.
  if (loss_.is_lost() || (left.empty() && !tables_.owned.HasAny(owner_id))) {
    done();
    return;
  }
  if (left.empty()) {
    // Its streams are closed, and memory is left: one more stream frees it.
    const int64_t index = submissions_.ReserveStream(nullptr, owner_id);
    if (index < 0) {
      awaiting_slot_.emplace_back(owner_id, std::move(done));
      return;
    }
    left.push_back(&streams_.At(static_cast<uint32_t>(index)));
    open = left;
  }
  Leaving& leaving = leaving_[owner_id];
  leaving.streams = static_cast<uint32_t>(left.size());
  leaving.callbacks.push_back(std::move(done));
  for (StreamState* const stream : left) {
    stream->SetOwner(nullptr);
    stream->has_owner_left = true;
  }
  for (StreamState* const stream : open) submissions_.SubmitOwn<protocol::StreamDestroyRecord>(*stream);
  // It may be held.
  for (StreamState* const stream : left) inbox_.Wake(*stream);
}

bool OwnerCleanup::FreeLeftBehind(StreamState& stream) {
  if (stream.owner_id == 0) return false;
  const auto leaving = leaving_.find(stream.owner_id);
  if (leaving == leaving_.end() || leaving->second.streams > 1) return false;
  if (!tables_.owned.HasAny(stream.owner_id)) return false;
  const OwnedHandles::Handles owned = tables_.owned.Take(stream.owner_id);
  // The thread may have ended between reserving the stream and creating it.
  if (stream.backend == nullptr) submissions_.SubmitOwn<protocol::StreamCreateRecord>(stream);
  for (const uint32_t handle : owned.graphs) submissions_.SubmitOwn(stream, protocol::FreeGraphRecord{.graph = handle});
  // Streams of other devices may use the memory; this channel knows only their last uses.
  if (!owned.memory.empty()) {
    for (const auto& [device, target, ticket] : users_.Unfinished()) {
      submissions_.SubmitOwn(stream, protocol::WaitRecord{.device = device, .target = target, .ticket = ticket});
    }
  }
  for (const uint32_t handle : owned.memory) submissions_.SubmitOwn(stream, protocol::FreeRecord{.handle = handle});
  for (const uint32_t handle : owned.events)
    submissions_.SubmitOwn(stream, protocol::FreeEventRecord{.handle = handle});
  submissions_.SubmitOwn<protocol::StreamDestroyRecord>(stream);
  return true;
}

void OwnerCleanup::StreamEnded(uint32_t owner_id) {
  const auto found = owner_id == 0 ? leaving_.end() : leaving_.find(owner_id);
  if (found != leaving_.end() && --found->second.streams == 0) {
    const Leaving left = std::move(found->second);
    leaving_.erase(found);
    for (const auto& done : left.callbacks) done();
  }
  for (auto& [waiting, done] : std::exchange(awaiting_slot_, {})) End(waiting, std::move(done));
}

void OwnerCleanup::TellAll() {
  for (const auto& [owner_id, leaving] : std::exchange(leaving_, {})) {
    for (const auto& done : leaving.callbacks) done();
  }
  for (const auto& [owner_id, tell] : std::exchange(awaiting_slot_, {})) tell();
}

}  // namespace millrace
