// A thread of a scenario that sleeps until it is rung, like an owner's event loop or a channel's thread.
#pragma once

#include <condition_variable>
#include <mutex>

#include "runtime/stream_state.h"

namespace explorer {

using namespace millrace;  // NOLINT: as in explored_test.h

class Sleeper : public WakeTarget, public StreamWaker {
 public:
  void Ring() noexcept override { WakeStream(0); }
  void WakeStream(uint32_t) noexcept override {
    std::lock_guard lock(mutex_);
    is_rung_ = true;
    rung_.notify_all();
  }
  void Sleep() {
    std::unique_lock lock(mutex_);
    rung_.wait(lock, [&] { return is_rung_; });
    is_rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool is_rung_ = false;
};

}  // namespace explorer
