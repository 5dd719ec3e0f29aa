#include "runtime/stream_state.h"

#include <utility>

namespace millrace {

const char* ParkReasonName(ParkReason reason) {
  switch (reason) {
    case ParkReason::kNone:
      return "running";
    case ParkReason::kPoint:
      return "point";
    case ParkReason::kBuild:
      return "build";
    case ParkReason::kPin:
      return "pin";
    case ParkReason::kWindow:
      return "window";
    case ParkReason::kMemory:
      return "memory";
    case ParkReason::kDrain:
      return "drain";
    case ParkReason::kHold:
      return "host";
    case ParkReason::kPeer:
      return "peer";
    case ParkReason::kBlockingCall:
      return "transfer";
  }
  return "";
}

void StreamState::Keep(Ticket ticket, std::shared_ptr<void> object) {
  const Ticket completed = Completed();
  while (!kept_.empty() && kept_.front().first <= completed) kept_.pop_front();
  kept_.emplace_back(ticket, std::move(object));
}

void StreamState::Forget() {
  kept_.clear();
  blocking_call.reset();
  refused.reset();
  std::lock_guard lock(mutex_);
  released_.clear();
  native_handle_.reset();
}

void StreamState::ReleaseHold(Ticket ticket, bool has_failed) {
  std::lock_guard lock(mutex_);
  if (ticket > Issued()) released_.push_back({ticket, has_failed});
}

bool StreamState::TakeRelease(Ticket ticket) {
  const bool is_released = ReleaseOf(ticket).has_value();
  if (is_released) {
    std::lock_guard lock(mutex_);
    std::erase_if(released_, [&](const Release& release) { return release.ticket <= ticket; });
  }
  return is_released;
}

std::optional<bool> StreamState::ReleaseOf(Ticket ticket) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(released_, ticket, &Release::ticket);
  return found == released_.end() ? std::nullopt : std::optional(found->has_failed);
}

void StreamState::CallOwner(Ticket ticket) {
  called_.store(ticket, std::memory_order_release);
  std::shared_ptr<WakeTarget> owner;
  {
    std::lock_guard lock(mutex_);
    owner = owner_;
  }
  if (owner != nullptr) owner->Ring();
}

void StreamState::SetNativeHandle(uint64_t handle) {
  std::lock_guard lock(mutex_);
  native_handle_ = handle;
}

std::optional<uint64_t> StreamState::NativeHandle() {
  std::lock_guard lock(mutex_);
  return native_handle_;
}

void StreamState::MarkIssued(Ticket ticket) {
  issued_.store(ticket, std::memory_order_seq_cst);
  const Ticket wanted = wanted_issued_.load(std::memory_order_seq_cst);
  if (wanted != 0 && wanted <= ticket) FireWaiters(false, ticket);
}

void StreamState::CompleteOnHost(Ticket ticket) {
  std::atomic_ref(slot_.host_word).store(ticket, std::memory_order_release);
  Progress(ticket);
}

void StreamState::Progress(Ticket completed) noexcept {
  // The caller stored the completed word and then comes here; AddWaiter stores the wanted ticket and then loads the
  // word. With a full fence between the store and the load on both sides, at least one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Ticket wanted = wanted_completed_.load(std::memory_order_relaxed);
  if (wanted != 0 && wanted <= completed) FireWaiters(true, completed);
}

void StreamState::SetOwner(std::shared_ptr<WakeTarget> owner) {
  std::lock_guard lock(mutex_);
  owner_ = std::move(owner);
}

bool StreamState::AddWaiter(Ticket ticket, bool until_completed, std::shared_ptr<StreamWaker> waker, uint32_t stream) {
  std::lock_guard lock(mutex_);
  const auto is_it = [&](const Waiter& w) {
    return w.ticket == ticket && w.until_completed == until_completed && w.stream == stream && w.waker == waker;
  };
  if (std::any_of(waiters_.begin(), waiters_.end(), is_it)) {
    // If the ticket was reached just now, the entry is still fired soon. That wake finds nothing to do.
    return (until_completed ? Completed() : Issued()) < ticket;
  }
  waiters_.push_back({ticket, until_completed, std::move(waker), stream});
  RefreshWanted();
  // See Progress. MarkIssued does the same with `issued_`, whose store and load are sequentially consistent.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((until_completed ? Completed() : Issued()) < ticket) return true;
  // It is still the last entry, because FireWaiters takes the lock that is held here.
  waiters_.pop_back();
  RefreshWanted();
  return false;
}

size_t StreamState::WaiterCount() {
  std::lock_guard lock(mutex_);
  return waiters_.size();
}

void StreamState::RefreshWanted() {
  Ticket issued = 0;
  Ticket completed = 0;
  for (const Waiter& waiter : waiters_) {
    Ticket& lowest = waiter.until_completed ? completed : issued;
    if (lowest == 0 || waiter.ticket < lowest) lowest = waiter.ticket;
  }
  wanted_issued_.store(issued, std::memory_order_seq_cst);
  wanted_completed_.store(completed, std::memory_order_seq_cst);
}

void StreamState::FireWaiters(bool completed, Ticket reached) {
  std::vector<Waiter> fired;
  std::shared_ptr<WakeTarget> owner;
  {
    std::lock_guard lock(mutex_);
    owner = owner_;
    const auto is_reached = [&](const Waiter& w) { return w.until_completed == completed && w.ticket <= reached; };
    for (Waiter& waiter : waiters_) {
      if (is_reached(waiter)) fired.push_back(waiter);
    }
    std::erase_if(waiters_, is_reached);
    RefreshWanted();
  }
  for (Waiter& waiter : fired) {
    if (waiter.waker != nullptr) {
      waiter.waker->WakeStream(waiter.stream);
    } else if (owner != nullptr) {
      owner->Ring();
    }
  }
}

void StreamState::WakeAll() {
  FireWaiters(true, UINT64_MAX);
  FireWaiters(false, UINT64_MAX);
  std::shared_ptr<WakeTarget> owner;
  {
    std::lock_guard lock(mutex_);
    owner = owner_;
  }
  // Ring also without a waiter: the owner learns here that the device is lost.
  if (owner != nullptr) owner->Ring();
}

}  // namespace millrace
