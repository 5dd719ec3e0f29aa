#include "runtime/graph_faults.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/stream_state.h"

namespace millrace {
namespace {

/// Slots of one graph: a quarter of those that a device has from the start (FaultSlots), 256 KiB.
constexpr size_t kMostSlots = 4096;
/// So that one launch can be queued while another runs, however many nodes there are.
constexpr size_t kFewestSets = 2;

}  // namespace

uint32_t GraphFaults::State(protocol::FaultSlot& slot) {
  return std::atomic_ref(slot.state).load(std::memory_order_acquire);
}

bool GraphFaults::HasCompleted(const Launch& launch) {
  return launch.stream->Completed() >= launch.ticket;
}

std::optional<uint32_t> GraphFaults::FindFree(uint32_t preferred) {
  std::lock_guard lock(mutex_);
  // After the preferred one comes the one that has been free for the longest time, unless sets were added meanwhile.
  for (size_t n = 0; n < sets_.size(); ++n) {
    const size_t set = (preferred + n) % sets_.size();
    if (!sets_[set].is_used) return static_cast<uint32_t>(set);
  }
  return std::nullopt;
}

bool GraphFaults::MayGrow() {
  std::lock_guard lock(mutex_);
  if (word_ != nullptr) return sets_.empty();
  const size_t most = std::min<size_t>(kMostSlots / std::max<size_t>(nodes_.size(), 1), protocol::kStreamWindow);
  return sets_.size() < std::max(most, kFewestSets);
}

bool GraphFaults::HasWord() const {
  return word_ != nullptr && State(*word_) != 0;
}

uint32_t GraphFaults::AddSet(Slots slots) {
  std::lock_guard lock(mutex_);
  sets_.push_back({.slots = std::move(slots)});
  return static_cast<uint32_t>(sets_.size() - 1);
}

void GraphFaults::Watch(StreamState& stream, hal::Ticket ticket, uint32_t set) {
  std::lock_guard lock(mutex_);
  sets_[set].is_used = true;
  launches_.push_back({.stream = &stream, .ticket = ticket, .set = set});
}

std::optional<std::pair<StreamState*, hal::Ticket>> GraphFaults::Oldest() {
  std::lock_guard lock(mutex_);
  if (launches_.empty()) return std::nullopt;
  return std::pair(launches_.front().stream, launches_.front().ticket);
}

std::optional<GraphFaults::Report> GraphFaults::ReportOf(const StreamState& stream, hal::Ticket ticket) {
  std::lock_guard lock(mutex_);
  for (const Launch& launch : launches_) {
    if (launch.stream != &stream || launch.ticket != ticket) continue;
    const Slots& slots = sets_[launch.set].slots;
    for (size_t n = 0; n < slots.size(); ++n) {
      if (State(*slots[n]) == hal::kFaultWritten) return Report{nodes_[n], *slots[n]};
    }
  }
  return std::nullopt;
}

size_t GraphFaults::CountCompleted() {
  std::lock_guard lock(mutex_);
  const auto first = std::ranges::find_if_not(launches_, HasCompleted);
  return static_cast<size_t>(first - launches_.begin());
}

void GraphFaults::Drop(size_t count) {
  std::lock_guard lock(mutex_);
  for (; count > 0; --count) {
    Set& set = sets_[launches_.front().set];
    for (protocol::FaultSlot* const slot : set.slots) {
      if (State(*slot) != 0) std::memset(static_cast<void*>(slot), 0, sizeof(*slot));
    }
    set.is_used = false;
    if (word_ != nullptr) std::memset(static_cast<void*>(word_), 0, sizeof(*word_));
    launches_.pop_front();
  }
}

GraphFaults::Slots GraphFaults::End() {
  std::lock_guard lock(mutex_);
  Slots all;
  for (const Set& set : sets_) all.insert(all.end(), set.slots.begin(), set.slots.end());
  if (word_ != nullptr) all.push_back(word_);
  for (protocol::FaultSlot* const slot : all) std::memset(static_cast<void*>(slot), 0, sizeof(*slot));
  sets_.clear();
  launches_.clear();
  return all;
}

}  // namespace millrace
