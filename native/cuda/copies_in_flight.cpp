#include "cuda/copies_in_flight.h"

#include <algorithm>

#include "cuda/stream.h"

namespace millrace::cuda {
namespace {

/// Smaller copies take about as long as a word.
constexpr uint64_t kLarge = uint64_t{64} << 10;
/// Whoever waits for a smaller copy, with no other beside it, gains more by a word than by a query.
constexpr uint64_t kOwnLarge = uint64_t{4} << 20;

}  // namespace

void CopiesInFlight::Note(Stream& stream, hal::Ticket ticket, uint64_t bytes) {
  if (bytes < kLarge) return;
  const auto known = std::ranges::find(last_, &stream, &Copy::stream);
  if (known == last_.end()) {
    last_.push_back({&stream, ticket, bytes});
    count_ = last_.size();
  } else {
    *known = {&stream, ticket, bytes};
  }
}

void CopiesInFlight::Forget(const Stream& stream) {
  std::erase_if(last_, [&](const Copy& each) { return each.stream == &stream; });
  count_ = last_.size();
}

CopiesInFlight::Unqueued::Unqueued(CopiesInFlight& copies, uint64_t bytes)
    : copies_(copies), count_(bytes < kLarge ? 0 : 1) {
  copies_.unqueued_ += count_;
}

CopiesInFlight::Unqueued::~Unqueued() {
  copies_.unqueued_ -= count_;
}

bool CopiesInFlight::KeepWordsAway(const Stream& stream) {
  if (unqueued_.load(std::memory_order_relaxed) > 0) return true;
  for (size_t n = 0; n < last_.size();) {
    const Copy& copy = last_[n];
    if (copy.stream == &stream && copy.bytes < kOwnLarge) {
      ++n;
    } else if (!copy.stream->HasCompleted(copy.ticket)) {
      return true;
    } else {
      last_[n] = last_.back();
      last_.pop_back();
      count_ = last_.size();
    }
  }
  return false;
}

}  // namespace millrace::cuda
