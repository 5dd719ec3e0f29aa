#include "runtime/in_flight.h"

#include <algorithm>
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
  size_t first = 0;
  for (size_t end = count_; first < end;) {
    const size_t middle = first + (end - first) / 2;
    if (At(middle).ticket < ticket) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first < count_ && At(first).ticket == ticket ? &At(first) : nullptr;
}

}  // namespace millrace
