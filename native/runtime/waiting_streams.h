// Streams, of any channel, that wait for the same object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace millrace {

/// A channel, which continues one of its streams when this is called. Thread: any.
class StreamWaker {
 public:
  virtual void WakeStream(uint32_t stream) noexcept = 0;

 protected:
  ~StreamWaker() = default;
};

/// The owner of an instance guards it by a lock, and wakes the streams without that lock.
class WaitingStreams {
 public:
  /// Adds a stream, once: a stream that was woken for another reason and waits again may be in the list already.
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
