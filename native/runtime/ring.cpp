#include "runtime/ring.h"

#include <cstddef>
#include <utility>

#include "runtime/host_entry.h"

namespace millrace {

Ring::Ring() : tail_(new Segment), head_(tail_) {}

Ring::~Ring() {
  while (head_ != nullptr) delete std::exchange(head_, head_->next.load(std::memory_order_relaxed));
}

Ring::Segment* Ring::TakeSegment() {
  ++segments_;
  if (spare_.empty()) return new Segment;
  Segment* segment = spare_.back().release();
  spare_.pop_back();
  segment->committed.store(0, std::memory_order_relaxed);
  segment->next.store(nullptr, std::memory_order_relaxed);
  return segment;
}

void Ring::Publish(std::span<const std::byte> record) {
  uint32_t at = tail_->committed.load(std::memory_order_relaxed);
  if (at + record.size() > kSegmentBytes) {
    Segment* segment = TakeSegment();
    tail_->next.store(segment, std::memory_order_release);
    tail_ = segment;
    at = 0;
  }
  std::byte* const place = tail_->data + at;
  std::memcpy(place, record.data(), record.size());
  const uint32_t reported = HostPoison::Reported();
  std::memcpy(place + offsetof(protocol::RecordHeader, reported), &reported, sizeof(reported));
  tail_->committed.store(at + static_cast<uint32_t>(record.size()), std::memory_order_release);
}

std::span<const std::byte> Ring::Front() {
  while (read_at_ == known_committed_) {
    // Read `next` first: once it is set, no record is added to this segment.
    Segment* next = head_->next.load(std::memory_order_acquire);
    known_committed_ = head_->committed.load(std::memory_order_acquire);
    if (read_at_ < known_committed_) break;
    if (next == nullptr) return {};
    std::unique_ptr<Segment> done(std::exchange(head_, next));
    read_at_ = known_committed_ = 0;
    std::lock_guard lock(mutex_);
    --segments_;
    if (spare_.size() < kSpareSegments) spare_.push_back(std::move(done));
  }
  return {head_->data + read_at_, known_committed_ - read_at_};
}

size_t Ring::HeldBytes() {
  std::lock_guard lock(mutex_);
  return (segments_ + spare_.size()) * sizeof(Segment);
}

}  // namespace millrace
