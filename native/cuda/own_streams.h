// The driver streams that this library created, including closed ones, and the check of streams that callers may wrap.
//
// The driver assigns hardware queues to streams round-robin at creation, and destroying a stream does not free its
// place: after some creations and destructions, two open streams could share a queue, where the second does not run
// while the first waits. So closed streams are kept, and the next request reuses the one with the lowest number: while
// no more streams are open than there are queues, each has its own queue. Hidden streams (of a probe, or of a copy's
// leg) come from here too.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda/context.h"

namespace millrace::cuda {

/// Thread: any.
class StreamSet {
 public:
  /// An unused stream. Reuses a closed one unless it has work, which only foreign code that knows its handle could have
  /// submitted. `green`: it is of a partition. With the context current.
  [[nodiscard]] Result<CUstream> Take(Context& context, int32_t priority, CUgreenCtx green = nullptr);
  /// The owner no longer uses the stream. With the context current.
  void GiveBack(Context& context, CUstream stream);
  /// Whether this library created the stream, open or closed.
  [[nodiscard]] bool Has(CUstream stream);

  /// Registers and unregisters the wrapping of a foreign stream, which must exist in between. May be nested.
  void Wrap(Context& context, CUstream stream);
  void Unwrap(Context& context, CUstream stream);
  /// Whether all known streams of the device are idle: this library's and the wrapped ones. This stays true while the
  /// caller holds the context's `submissions`. With the context current.
  [[nodiscard]] bool AreIdle(Context& context);

 private:
  /// Closed streams kept per device: twice the number of queues, for streams of several priorities.
  static constexpr size_t kMostKept = 64;

  struct Made {
    uint64_t number;  // In creation order.
    int32_t priority;
    uint32_t ordinal;
    CUgreenCtx green;  // Null if it is of the whole device.
  };
  struct Kept {
    Made made;
    CUstream stream;
  };

  [[nodiscard]] Result<CUstream> TakeKept(Context& context, int32_t priority, CUgreenCtx green);

  std::mutex mutex_;
  std::unordered_map<CUstream, Made> made_;            // Guarded by mutex_, like those below.
  std::array<std::vector<Kept>, kMaxDevices> closed_;  // By device, ordered by number.
  std::array<std::vector<CUstream>, kMaxDevices> wrapped_;
  uint64_t next_number_ = 0;
};

/// The process's stream set.
StreamSet& OwnStreams();

/// Checks that a caller's handle is a stream of this device, as far as the driver tells: kArgument if not.
Status CheckForeign(Context& context, CUstream handle);

}  // namespace millrace::cuda
