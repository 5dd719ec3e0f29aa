// Memory that was shared between processes and freed, but not yet returned to the driver.
//
// cuMemFree and cuIpcCloseMemHandle wait for all of the device's work, and other driver calls of the process wait
// behind them. So freed memory is kept until an allocation of about its size reuses it, until returning it does not
// wait, or until memory is short.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"

namespace millrace::cuda {

/// Thread: any. Calls that release memory need the context current.
class DeferredFrees {
 public:
  explicit DeferredFrees(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;

  void Keep(std::unique_ptr<Memory> memory);
  /// The smallest memory that suits `bytes`; null when there is none.
  [[nodiscard]] std::unique_ptr<Memory> Take(uint64_t bytes);

  /// Releases until at most `keep_bytes` of this process's own memory remain, and all of other processes' memory. Waits
  /// for the device if there is any.
  void GiveBack(uint64_t keep_bytes);
  /// Releases as long as the device is idle.
  void GiveBackWhileIdle();

  /// Bytes of this process's own memory.
  [[nodiscard]] uint64_t own_bytes() const { return own_bytes_.load(std::memory_order_relaxed); }
  /// Includes other processes' memory, which they cannot free while it is mapped here.
  [[nodiscard]] uint64_t all_bytes() const { return all_bytes_.load(std::memory_order_relaxed); }

 private:
  /// The next to release; null when at most `keep_bytes` remain. Other processes' memory first, then the oldest.
  [[nodiscard]] std::unique_ptr<Memory> TakeOut(uint64_t keep_bytes);
  /// Needs `mutex_`.
  [[nodiscard]] std::unique_ptr<Memory> TakeOut(std::vector<std::unique_ptr<Memory>>::iterator found);

  const std::shared_ptr<Context> context_;

  std::mutex giving_mutex_;  // Held during a release, so that none is in progress afterwards. Locked before mutex_.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> kept_;  // Guarded by mutex_. Oldest first.
  std::atomic<uint64_t> own_bytes_{0};
  std::atomic<uint64_t> all_bytes_{0};
};

}  // namespace millrace::cuda
