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
  explicit RecordingMemory(uint64_t bytes) : address_(std::calloc(bytes == 0 ? 1 : bytes, 1)), bytes_(bytes) {}
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

/// The first and the last byte.
inline void Touch(std::byte* dst, const std::byte* src, uint64_t bytes) {
  if (bytes == 0) return;
  for (const uint64_t at : {uint64_t{0}, bytes - 1}) dst[at] = src[at];
}
/// The first byte of the lowest element, and the last one of the highest.
inline void TouchStrided(std::byte* dst, const std::byte* src, uint32_t element_bytes,
                         std::span<const hal::StridedAxis> axes) {
  int64_t lowest[2] = {}, highest[2] = {};
  for (const hal::StridedAxis& axis : axes) {
    if (axis.extent == 0) return;
    for (const auto& [side, stride] : {std::pair(0, axis.dst_stride), std::pair(1, axis.src_stride)}) {
      (stride < 0 ? lowest : highest)[side] += stride * static_cast<int64_t>(axis.extent - 1);
    }
  }
  for (std::byte* const end : {dst + lowest[0], dst + highest[0] + element_bytes - 1}) *end = std::byte{1};
  if (src == nullptr) return;
  const std::byte volatile* const from = src;
  static_cast<void>(from[lowest[1]] == from[highest[1] + element_bytes - 1]);
}

}  // namespace millrace::testing
