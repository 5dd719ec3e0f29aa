// Records that an owner in another process submits to a channel.
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::remote {

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Thread: the channel's.
  [[nodiscard]] virtual bool HasAny() const noexcept = 0;
  /// Gives the channel what is there, or a part of it. Returns whether there was anything. Thread: the channel's.
  virtual bool Take() = 0;
  /// 1 while the channel's thread sleeps. The other process sets it to 0 and wakes the thread.
  [[nodiscard]] virtual std::atomic<uint32_t>& sleeping() = 0;
};

}  // namespace millrace::remote
