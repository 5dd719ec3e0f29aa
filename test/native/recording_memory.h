// The memory of a recording backend, and the log that it and the backend write.
#pragma once

#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hal/hal.h"

namespace millrace::testing {

/// The log of all devices of a backend, in call order.
class CallLog {
 public:
  void Add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::vector<std::string> Lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Position of the first line that equals `line`, or -1.
  [[nodiscard]] int Find(const std::string& line) {
    std::lock_guard lock(mutex_);
    for (size_t n = 0; n < lines_.size(); ++n) {
      if (lines_[n] == line) return static_cast<int>(n);
    }
    return -1;
  }
  [[nodiscard]] size_t Size() {
    std::lock_guard lock(mutex_);
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Zero-initialised.
class RecordingMemory : public hal::Memory {
 public:
  explicit RecordingMemory(uint64_t bytes) : address_(std::calloc(bytes + 1, 1)), bytes_(bytes) {}
  ~RecordingMemory() override { std::free(address_); }
  [[nodiscard]] std::byte* address() const override { return static_cast<std::byte*>(address_); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  void* const address_;  // Its pages come when they are touched.
  const uint64_t bytes_;
};

/// Logs its destruction.
class LoggedMemory final : public RecordingMemory {
 public:
  LoggedMemory(CallLog& log, uint64_t bytes) : RecordingMemory(bytes), log_(log) {}
  ~LoggedMemory() override { log_.Add("drops " + std::to_string(bytes())); }

 private:
  CallLog& log_;
};

}  // namespace millrace::testing
