#include "runtime/submission_queue.h"

#include <utility>

namespace millrace {

Submission SubmissionQueue::Submit(std::span<const std::byte> bytes) {
  const std::optional<Record> record = Record::Check(bytes);
  if (!record) return {0, StatusCode::kInternal};
  if (const StatusCode lost = loss_.status(); lost != StatusCode::kOk) return {0, lost};
  Ticket ticket = 0;
  {
    std::lock_guard lock(ring_.producer_mutex());
    StreamState* const stream = streams_.Find(record->header.stream);
    if (stream == nullptr || !stream->is_reserved) return {0, StatusCode::kInternal};
    // Behind its end nothing of a stream is issued in order.
    if (is_closing_ || stream->is_ending) return {0, StatusCode::kState};
    if (IsFull()) {
      known_retired_ = retired_.load(std::memory_order_relaxed);
      known_retired_bytes_ = retired_bytes_.load(std::memory_order_relaxed);
      if (IsFull()) return {0, StatusCode::kLimit};
    }
    ++submitted_;
    submitted_bytes_ += bytes.size();
    ticket = ++stream->last_ticket;
    if (record->opcode() == protocol::Opcode::kStreamDestroy) stream->is_ending = true;
    ring_.Publish(bytes);
  }
  inbox_.Ring();
  return {ticket, StatusCode::kOk};
}

Ticket SubmissionQueue::Forward(std::span<const std::byte> bytes) {
  const std::optional<Record> record = Record::Check(bytes);
  if (!record || loss_.is_lost()) return 0;
  std::lock_guard lock(ring_.producer_mutex());
  StreamState* const stream = streams_.Find(record->header.stream);
  if (stream == nullptr || !stream->is_reserved || stream->is_ending) return 0;
  ++submitted_;
  submitted_bytes_ += bytes.size();
  if (record->opcode() == protocol::Opcode::kStreamDestroy) stream->is_ending = true;
  ring_.Publish(bytes);
  return ++stream->last_ticket;
}

int64_t SubmissionQueue::ReserveStream(std::shared_ptr<WakeTarget> owner, uint32_t owner_id) {
  std::lock_guard lock(ring_.producer_mutex());
  StreamState* const stream = TakeSlot();
  if (stream == nullptr) return -1;
  stream->is_reserved = true;
  stream->is_ending = false;
  stream->owner_id = owner_id;
  stream->failures.Restart();
  stream->SetOwner(std::move(owner));
  return stream->index();
}

StreamState* SubmissionQueue::TakeSlot() {
  const uint32_t used = streams_.count();
  if (resting_ <= kRestingSlots && used < streams_.slots()) return &streams_.Add();
  StreamState* const stream = first_resting_;
  if (stream == nullptr) return nullptr;
  first_resting_ = std::exchange(stream->next_resting, nullptr);
  if (first_resting_ == nullptr) last_resting_ = nullptr;
  --resting_;
  return stream;
}

Ticket SubmissionQueue::LastTicket(uint32_t stream) {
  std::lock_guard lock(ring_.producer_mutex());
  const StreamState* const state = streams_.Find(stream);
  return state == nullptr ? 0 : state->last_ticket;
}

std::vector<SubmissionQueue::Point> SubmissionQueue::PendingPoints() {
  std::vector<Point> points;
  std::lock_guard lock(ring_.producer_mutex());
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    const StreamState& stream = streams_.At(n);
    if (stream.is_reserved && stream.Completed() < stream.last_ticket) points.push_back({n, stream.last_ticket});
  }
  return points;
}

void SubmissionQueue::Close() {
  std::lock_guard lock(ring_.producer_mutex());
  is_closing_ = true;
}

void SubmissionQueue::Describe(ChannelStats& stats) {
  stats.ring_bytes = ring_.HeldBytes();
  std::lock_guard lock(ring_.producer_mutex());
  stats.pending_records = submitted_ - retired_.load(std::memory_order_relaxed);
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    const StreamState& stream = streams_.At(n);
    if (!stream.is_reserved) continue;
    ++stats.streams;
    const ParkReason reason = stream.park.load(std::memory_order_relaxed);
    if (reason != ParkReason::kNone) stats.parked.push_back({n, reason, stream.last_ticket - stream.Issued()});
  }
}

void SubmissionQueue::FreeSlot(StreamState& stream) {
  std::lock_guard lock(ring_.producer_mutex());
  stream.is_reserved = false;
  (last_resting_ == nullptr ? first_resting_ : last_resting_->next_resting) = &stream;
  last_resting_ = &stream;
  ++resting_;
}

SubmissionQueue::OwnedStreams SubmissionQueue::StreamsOf(uint32_t owner_id) {
  OwnedStreams owned;
  std::lock_guard lock(ring_.producer_mutex());
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    if (!stream.is_reserved || stream.owner_id != owner_id) continue;
    owned.all.push_back(&stream);
    if (!stream.is_ending) owned.open.push_back(&stream);
  }
  return owned;
}

}  // namespace millrace
