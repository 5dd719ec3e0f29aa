#include "cuda/copies_in_flight.h"

#include <algorithm>

#include "cuda/stream.h"

namespace millrace::cuda {
namespace {

/// Smaller copies take about as long as a word.
constexpr uint64_t kLarge = uint64_t{64} << 10;

}  // namespace

void CopiesInFlight::Note(Stream& stream, hal::Ticket ticket, uint64_t bytes) {
  if (bytes < kLarge) return;
  const auto known = std::ranges::find(last_, &stream, &std::pair<Stream*, hal::Ticket>::first);
  if (known == last_.end())
    last_.emplace_back(&stream, ticket);
  else
    known->second = ticket;
}

void CopiesInFlight::Forget(const Stream& stream) {
  std::erase_if(last_, [&](const auto& each) { return each.first == &stream; });
}

bool CopiesInFlight::HasOtherThan(const Stream& stream) {
  for (size_t n = 0; n < last_.size();) {
    if (last_[n].first == &stream) {
      ++n;
    } else if (last_[n].first->HasCompleted(last_[n].second)) {
      last_[n] = last_.back();
      last_.pop_back();
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace millrace::cuda
