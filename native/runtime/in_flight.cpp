#include "runtime/in_flight.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace millrace {

void InFlight::BecomePlain() {
  graph.reset();
  held.clear();
  host.clear();
  must_ask = false;
  is_plain = true;
}

void InFlightQueue::Grow() {
  std::vector<InFlight> grown(std::max(kStep, 2 * records_.size()));
  for (size_t n = 0; n < count_; ++n) grown[n] = std::move(At(n));
  records_ = std::move(grown);
  first_ = 0;
}

void InFlightQueue::Clear() {
  records_.clear();
  first_ = count_ = 0;
}

InFlight* InFlightQueue::Find(hal::Ticket ticket) {
  const auto indices = std::views::iota(size_t{0}, count_);
  const auto found = std::ranges::lower_bound(indices, ticket, {}, [&](size_t n) { return At(n).ticket; });
  if (found == indices.end() || At(*found).ticket != ticket) return nullptr;
  return &At(*found);
}

}  // namespace millrace
