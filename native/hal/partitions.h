// The partitions of a device: shares of its multiprocessors, or of its threads, for streams of their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hal/status.h"

namespace millrace::hal {

struct Partition {
  uint32_t id = 0;  // Of StreamRequest. No other partition of the device had it.
  uint32_t multiprocessors = 0;
};

/// Without partitions, the shares that were asked for, rounded up to whole units, are more than the device has.
struct Division {
  uint32_t unit = 1;
  std::vector<Partition> partitions;
};

/// What a backend has of each partition. Streams of a partition hold its Part.
template <typename Part>
class PartitionTable {
 public:
  /// kState while there are partitions: two divisions would overlap. Thread: control, like those below.
  [[nodiscard]] Status CheckNone() {
    const std::lock_guard lock(mutex_);
    if (parts_.empty()) return {};
    return {StatusCode::kState, "dividing a device whose partitions are open"};
  }
  [[nodiscard]] uint32_t Add(std::shared_ptr<Part> part) {
    const std::lock_guard lock(mutex_);
    parts_.emplace(++last_, std::move(part));
    return last_;
  }
  /// Ends a partition. kState while it has streams.
  [[nodiscard]] Result<std::shared_ptr<Part>> Take(uint32_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(id);
    if (found == parts_.end()) return Status(StatusCode::kState, "ending a partition that is not open");
    if (found->second.use_count() > 1) return Status(StatusCode::kState, "ending a partition with open streams");
    std::shared_ptr<Part> part = std::move(found->second);
    parts_.erase(found);
    return part;
  }
  /// All that are left. Thread: any, while the device closes.
  [[nodiscard]] std::map<uint32_t, std::shared_ptr<Part>> TakeAll() {
    const std::lock_guard lock(mutex_);
    return std::exchange(parts_, {});
  }
  /// Null for 0, the whole device. Thread: any.
  [[nodiscard]] Result<std::shared_ptr<Part>> Find(uint32_t id) {
    if (id == 0) return std::shared_ptr<Part>();
    const std::lock_guard lock(mutex_);
    const auto found = parts_.find(id);
    if (found == parts_.end()) return Status(StatusCode::kState, "using a partition that is closed");
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Part>> parts_;  // Guarded by mutex_.
  uint32_t last_ = 0;                                // Guarded by mutex_.
};

}  // namespace millrace::hal
