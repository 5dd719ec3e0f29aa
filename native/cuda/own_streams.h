// Which driver streams are this library's own, and which of somebody else's may be wrapped.
#pragma once

#include <mutex>
#include <unordered_set>

#include "cuda/context.h"

namespace millrace::cuda {

/// The streams that this library made and has not destroyed, of all devices. Thread: any.
class StreamSet {
 public:
  void Add(CUstream stream) {
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
  }
  void Remove(CUstream stream) {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  bool Has(CUstream stream) {
    const std::lock_guard lock(mutex_);
    return streams_.contains(stream);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<CUstream> streams_;  // Guarded by mutex_.
};

/// The one of the process.
StreamSet& OwnStreams();

/// That a handle somebody gave us is a stream of this device, as far as the driver tells: kArgument if not.
Status CheckForeign(Context& context, CUstream handle);

}  // namespace millrace::cuda
