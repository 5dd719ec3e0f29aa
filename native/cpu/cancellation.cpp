// Cancels a device whose work is no longer needed: items that have not begun are dropped, and running items stop at the
// next block.
//
// A dropped ticket never completes, so no code mistakes it for completed. If streams of other CPU devices wait for
// tickets of this device, those tickets, and everything that they depend on, still run. Dropped items stay allocated
// until the device closes, because running items may still use memory that they would free. Thread: channel of the
// cancelled device, unless stated otherwise.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cpu/device.h"
#include "cpu/stream.h"

namespace millrace::cpu {

using hal::Ticket;

// Thread: the channel of `to`, which is about to wait for this stream of another device.
bool StreamCore::Promise(Ticket until, const std::shared_ptr<StreamCore>& to, Ticket by) {
  constexpr size_t kPruneAt = 64;
  std::lock_guard lock(mutex_);
  if (until > accepted_) return false;
  const Ticket completed = completed_.load(std::memory_order_acquire);
  if (until <= completed) return true;
  if (is_given_up_) return false;
  if (promises_.size() >= kPruneAt) std::erase_if(promises_, [&](const auto& made) { return made.until <= completed; });
  promises_.push_back({until, to, by});
  return true;
}

void StreamCore::Refuse() {
  std::lock_guard lock(mutex_);
  is_given_up_ = true;
}

// The last ticket that a stream of another, uncancelled device waits for. That device may be cancelled later.
Ticket StreamCore::Promised() {
  Ticket last = 0;
  std::lock_guard lock(mutex_);
  for (const auto& [until, to, by] : promises_) {
    const std::shared_ptr<StreamCore> waiter = to.lock();
    if (waiter != nullptr && by <= waiter->last_kept_.load(std::memory_order_acquire)) last = std::max(last, until);
  }
  return last;
}

std::vector<StreamCore::Wait> StreamCore::WaitsUntil(Ticket last) {
  std::vector<Wait> waits;
  std::lock_guard lock(mutex_);
  if (waiting_.ticket <= last) {
    if (auto other = waiting_.other.lock()) waits.push_back({std::move(other), waiting_.until});
  }
  for (const Item& item : items_) {
    if (item.ticket > last) break;
    if (const Wait* const wait = std::get_if<Wait>(&item.work)) waits.push_back(*wait);
  }
  return waits;
}

void StreamCore::DropAfter(Ticket last) {
  std::shared_ptr<StreamCore> other;
  {
    std::lock_guard lock(mutex_);
    if (last < last_kept_.load(std::memory_order_relaxed)) last_kept_.store(last, std::memory_order_release);
    while (!items_.empty() && items_.back().ticket > last) {
      dropped_.push_back(std::move(items_.back()));
      items_.pop_back();
    }
    if (waiting_.ticket > last) other = waiting_.other.lock();
  }
  // The wait would last long, or forever, although its item is dropped.
  if (other != nullptr && other->Leave(*this)) pool_->Schedule(shared_from_this());
}

// Unregisters the wait of `waiter`, so that completing its ticket no longer schedules it. False: it does not wait here.
// Thread: any.
bool StreamCore::Leave(const StreamCore& waiter) {
  std::shared_ptr<StreamCore> left;  // Its destructor must not run under the lock.
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                  [&](const Waiter& waiting) { return waiting.stream.get() == &waiter; });
  if (found == waiters_.end()) return false;
  left = std::move(found->stream);
  waiters_.erase(found);
  std::make_heap(waiters_.begin(), waiters_.end());
  return true;
}

// Called when nothing runs on this device any more.
void StreamCore::Clear() {
  std::deque<Item> items;
  std::vector<Item> dropped;
  std::lock_guard lock(mutex_);
  items.swap(items_);
  dropped.swap(dropped_);
}

void CpuDevice::Cancel() {
  if (!std::exchange(is_given_up_, true)) {
    for (const auto& stream : streams_) {
      if (auto core = stream.lock()) given_up_.push_back(std::move(core));
    }
    for (const auto& core : given_up_) core->Refuse();
  }
  std::vector<Ticket> kept;
  std::unordered_map<const StreamCore*, size_t> places;
  for (const auto& core : given_up_) {
    places.emplace(core.get(), kept.size());
    kept.push_back(core->Promised());
  }
  // Kept items may wait for other streams of this device, whose items up to that ticket are then kept too.
  for (bool grows = true; std::exchange(grows, false);) {
    for (size_t n = 0; n < given_up_.size(); ++n) {
      if (kept[n] <= given_up_[n]->Completed()) continue;
      for (const auto& [other, until] : given_up_[n]->WaitsUntil(kept[n])) {
        const auto place = places.find(other.get());
        if (place == places.end() || kept[place->second] >= until) continue;
        kept[place->second] = until;
        grows = true;
      }
    }
  }
  for (size_t n = 0; n < given_up_.size(); ++n) given_up_[n]->DropAfter(kept[n]);
}

}  // namespace millrace::cpu
