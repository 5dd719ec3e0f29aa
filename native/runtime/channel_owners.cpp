// Threads that share a device which another thread opened, and what happens to their streams and memory when they go:
// by closing, by an exception, or by worker.terminate() at any moment.
//
// A thread that has left submits nothing. What it submitted before runs to its end, since streams of other threads may
// wait for it. The last of its streams that ends frees the memory and the events that the thread had not freed.

#include <utility>

#include "runtime/channel.h"

namespace millrace {

namespace {

template <typename Record>
Record RecordOf(protocol::Opcode opcode, uint32_t stream) {
  Record record{};
  record.header.opcode = static_cast<uint16_t>(opcode);
  record.header.size = sizeof(Record);
  record.header.stream = stream;
  return record;
}

}  // namespace

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
      if (!std::exchange(stream->is_ending, true)) open.push_back(stream);
    }
  }
  // On a lost device no record is issued any more, and everything goes with it.
  if (left.empty() || LostStatus() != StatusCode::kOk) {
    told();
    return;
  }
  Leaving& leaving = leaving_[owner_id];
  leaving.streams = static_cast<uint32_t>(left.size());
  leaving.told.push_back(std::move(told));
  for (StreamState* const stream : left) {
    stream->SetOwner(nullptr);
    stream->has_owner_left = true;
  }
  for (StreamState* const stream : open) {
    const auto record = RecordOf<protocol::StreamDestroyRecord>(protocol::Opcode::kStreamDestroy, stream->index());
    SubmitOwn(*stream, std::as_bytes(std::span(&record, 1)));
  }
  // It may be held.
  for (StreamState* const stream : left) WakeStream(stream->index());
}

void Channel::SubmitOwn(StreamState& stream, std::span<const std::byte> record) {
  std::lock_guard lock(ring_.producer_mutex());
  ++submitted_;
  ++stream.last_ticket;
  ring_.Publish(record);
}

bool Channel::FreeLeftBehind(StreamState& stream) {
  if (stream.owner_id == 0) return false;
  const auto leaving = leaving_.find(stream.owner_id);
  if (leaving == leaving_.end() || leaving->second.streams > 1) return false;
  const auto found = owned_.find(stream.owner_id);
  if (found == owned_.end()) return false;
  const Owned owned = std::move(found->second);
  owned_.erase(found);
  if (owned.memory.empty() && owned.events.empty()) return false;
  for (const uint32_t handle : owned.memory) {
    auto record = RecordOf<protocol::FreeRecord>(protocol::Opcode::kFree, stream.index());
    record.handle = handle;
    SubmitOwn(stream, std::as_bytes(std::span(&record, 1)));
  }
  for (const uint32_t handle : owned.events) {
    auto record = RecordOf<protocol::FreeEventRecord>(protocol::Opcode::kFreeEvent, stream.index());
    record.handle = handle;
    SubmitOwn(stream, std::as_bytes(std::span(&record, 1)));
  }
  const auto last = RecordOf<protocol::StreamDestroyRecord>(protocol::Opcode::kStreamDestroy, stream.index());
  SubmitOwn(stream, std::as_bytes(std::span(&last, 1)));
  return true;
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
}

void Channel::Own(const StreamState& stream, uint32_t memory) {
  if (stream.owner_id != 0) owned_[stream.owner_id].memory.insert(memory);
}

void Channel::OwnEvent(const StreamState& stream, uint32_t event) {
  if (stream.owner_id != 0) owned_[stream.owner_id].events.insert(event);
}

}  // namespace millrace
