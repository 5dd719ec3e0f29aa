// Streams that wait for the same thing, of any channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace millrace {

/// A channel that goes on with one of its streams when told. Thread: any.
class StreamWaker {
 public:
  virtual void WakeStream(uint32_t stream) noexcept = 0;

 protected:
  ~StreamWaker() = default;
};

/// Guarded by whoever has it; woken without that lock.
class WaitingStreams {
 public:
  /// A stream that is woken for another reason, looks and waits again is here once.
  void Add(std::shared_ptr<StreamWaker> waker, uint32_t stream) {
    const auto is_it = [&](const Waiter& waiter) { return waiter.stream == stream && waiter.waker == waker; };
    if (std::none_of(waiters_.begin(), waiters_.end(), is_it)) waiters_.push_back({std::move(waker), stream});
  }
  void Add(WaitingStreams others) {
    for (Waiter& waiter : others.waiters_) waiters_.push_back(std::move(waiter));
  }
  void Wake() const {
    for (const Waiter& waiter : waiters_) waiter.waker->WakeStream(waiter.stream);
  }

 private:
  struct Waiter {
    std::shared_ptr<StreamWaker> waker;
    uint32_t stream;
  };
  std::vector<Waiter> waiters_;
};

}  // namespace millrace
