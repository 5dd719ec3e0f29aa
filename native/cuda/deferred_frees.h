// Freed memory that nobody uses and the driver does not have back yet: memory that processes share.
//
// cuMemFree and cuIpcCloseMemHandle wait for everything that the device has to do, and the process's other driver calls
// wait for them meanwhile. So what was freed is kept: for an allocation of about its size, and until giving it back
// waits for nothing, or somebody needs the memory more than the time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"

namespace millrace::cuda {

/// Thread: any. Calls that give back come with the context current.
class DeferredFrees {
 public:
  explicit DeferredFrees(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;

  void Keep(std::unique_ptr<Memory> memory);
  /// One that suits so many bytes, the smallest; null when there is none.
  [[nodiscard]] std::unique_ptr<Memory> Take(uint64_t bytes);

  /// Gives back until at most `keep_bytes` of this process's own memory are left, and other processes' in any case.
  /// Waits for the device if there is any.
  void GiveBack(uint64_t keep_bytes);
  /// Gives back as long as the device has nothing to do.
  void GiveBackWhileIdle();

  /// This process's own.
  [[nodiscard]] uint64_t own_bytes() const { return own_bytes_.load(std::memory_order_relaxed); }
  /// Other processes' too: those cannot have it back while it is mapped here.
  [[nodiscard]] uint64_t all_bytes() const { return all_bytes_.load(std::memory_order_relaxed); }

 private:
  /// The next to be given back, null when no more than `keep_bytes` are left. Other processes' first, then the oldest.
  [[nodiscard]] std::unique_ptr<Memory> TakeOut(uint64_t keep_bytes);
  /// Call with `mutex_` held.
  [[nodiscard]] std::unique_ptr<Memory> TakeOut(std::vector<std::unique_ptr<Memory>>::iterator found);

  const std::shared_ptr<Context> context_;

  std::mutex giving_mutex_;  // Held while some is given back, so that after it none is about to be. Before mutex_.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> kept_;  // Guarded by mutex_. The oldest first.
  std::atomic<uint64_t> own_bytes_{0};
  std::atomic<uint64_t> all_bytes_{0};
};

}  // namespace millrace::cuda
