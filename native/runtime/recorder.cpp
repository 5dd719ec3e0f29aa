#include "runtime/recorder.h"

#include <algorithm>
#include <utility>

namespace millrace {

bool Recorder::Start(size_t most, bool wants_times) {
  std::lock_guard lock(mutex_);
  if (IsOn()) return false;
  most_ = most;
  is_on_.store(true, std::memory_order_relaxed);
  wants_times_.store(wants_times, std::memory_order_relaxed);
  return true;
}

void Recorder::Stop() {
  std::lock_guard lock(mutex_);
  is_on_.store(false, std::memory_order_relaxed);
  wants_times_.store(false, std::memory_order_relaxed);
  times_ = {};
  first_ = 0;
  dropped_ = 0;
}

void Recorder::Note(const protocol::RecordedTime& time) noexcept {
  std::lock_guard lock(mutex_);
  // It may have been stopped meanwhile.
  if (!IsOn()) return;
  if (times_.size() - first_ >= most_) {
    ++first_;
    ++dropped_;
  }
  if (first_ > most_) {
    times_.erase(times_.begin(), times_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  times_.push_back(time);
}

Recorder::Taken Recorder::Take(std::span<protocol::RecordedTime> into) {
  std::lock_guard lock(mutex_);
  const size_t count = std::min(into.size(), times_.size() - first_);
  std::copy_n(times_.begin() + static_cast<ptrdiff_t>(first_), count, into.begin());
  first_ += count;
  if (first_ == times_.size()) {
    times_.clear();
    first_ = 0;
  }
  return {count, std::exchange(dropped_, 0)};
}

}  // namespace millrace
