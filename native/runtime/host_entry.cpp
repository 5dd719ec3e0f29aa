#include "runtime/host_entry.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace {

FailureId PoisonedRanges::by(uint64_t start, uint64_t bytes, bool with_lasting, uint32_t reported) {
  if (is_clean_.load(std::memory_order_acquire)) return 0;
  std::lock_guard lock(mutex_);
  FailureId first = 0;
  for (auto at = FirstBehind(start); at != ranges_.end() && at->first < start + bytes; ++at) {
    if (reported >= at->second.reported_at || (at->second.is_lasting && !with_lasting)) continue;
    TakeFirst(first, at->second.failure);
  }
  return first;
}

void PoisonedRanges::Set(uint64_t start, uint64_t bytes, FailureId failure, bool is_lasting, uint32_t reported_at) {
  std::lock_guard lock(mutex_);
  Cut(start, start + bytes);
  ranges_[start] = {start + bytes, failure, is_lasting, reported_at};
  is_clean_.store(false, std::memory_order_release);
}

void PoisonedRanges::Report(uint64_t start, uint64_t bytes, FailureId failure, uint32_t reported_at) {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, Range>> reported;
  for (auto at = FirstBehind(start); at != ranges_.end() && at->first < start + bytes; ++at) {
    const Range& range = at->second;
    if (range.failure != failure || range.is_lasting || range.reported_at != HostPoison::kUnreported) continue;
    reported.push_back({std::max(at->first, start), {std::min(range.end, start + bytes), failure, false, reported_at}});
  }
  for (const auto& [first, range] : reported) {
    Cut(first, range.end);
    ranges_[first] = range;
  }
}

void PoisonedRanges::Overwrite(uint64_t start, uint64_t bytes) {
  if (is_clean_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  Cut(start, start + bytes);
  is_clean_.store(ranges_.empty(), std::memory_order_release);
}

/// The first range that ends after `start`.
PoisonedRanges::Ranges::iterator PoisonedRanges::FirstBehind(uint64_t start) {
  const auto next = ranges_.upper_bound(start);
  if (next == ranges_.begin()) return next;
  const auto before = std::prev(next);
  return before->second.end > start ? before : next;
}

void PoisonedRanges::Cut(uint64_t start, uint64_t end) {
  for (auto at = FirstBehind(start); at != ranges_.end() && at->first < end;) {
    const auto [first, range] = *at;
    at = ranges_.erase(at);
    if (first < start) ranges_[first] = {start, range.failure, range.is_lasting, range.reported_at};
    if (range.end > end) ranges_[end] = range;
  }
}

std::vector<HostRange> HostRange::Without(const HostRange& other) const {
  if (!Overlaps(other)) return {*this};
  std::vector<HostRange> rest;
  if (start < other.start) rest.push_back({state, start, other.start - start, is_lasting, reported_at});
  if (end() > other.end()) rest.push_back({state, other.end(), end() - other.end(), is_lasting, reported_at});
  return rest;
}

}  // namespace millrace
