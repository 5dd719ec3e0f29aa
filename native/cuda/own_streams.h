// The driver streams that this library made, those that are closed included, and which of somebody else's may be
// wrapped.
//
// The driver deals its hardware queues to streams in turn, in the order in which they are made, and destroying one
// gives none back: a program that makes and destroys streams would soon have two open ones in one queue, where the
// second does not run while the first waits. So a stream that was closed is kept, and the next one to be made is that
// of the lowest number again: as long as no more streams were open at once than there are queues, each has one to
// itself. Streams that nobody sees (of a probe, of a leg of a copy) come from here too.
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
  /// A stream that nobody has. One that was closed is used again unless it still has work, which can only be that of
  /// somebody who knew its handle. With the context current.
  [[nodiscard]] Result<CUstream> Take(Context& context, int32_t priority);
  /// Its owner is done with it. With the context current.
  void GiveBack(Context& context, CUstream stream);
  /// Whether it is one of them, open or closed.
  [[nodiscard]] bool Has(CUstream stream);

  /// Somebody else's stream is wrapped, and is not any more. Between the two it exists. As often as one likes.
  void Wrap(Context& context, CUstream stream);
  void Unwrap(Context& context, CUstream stream);
  /// Whether no stream of the device that is known here has anything to do: ours and those that are wrapped. Who holds
  /// the context's `submissions` knows that this stays so. With the context current.
  [[nodiscard]] bool AreIdle(Context& context);

 private:
  /// Closed ones that a device keeps: twice the queues there are, for the streams of more than one priority.
  static constexpr size_t kMostKept = 64;

  struct Made {
    uint64_t number;  // In the order of their making.
    int32_t priority;
    uint32_t ordinal;
  };
  struct Kept {
    Made made;
    CUstream stream;
  };

  [[nodiscard]] Result<CUstream> TakeKept(Context& context, int32_t priority);

  std::mutex mutex_;
  std::unordered_map<CUstream, Made> made_;            // Guarded by mutex_, like those below.
  std::array<std::vector<Kept>, kMaxDevices> closed_;  // Of each device, by number.
  std::array<std::vector<CUstream>, kMaxDevices> wrapped_;
  uint64_t next_number_ = 0;
};

/// The one of the process.
StreamSet& OwnStreams();

/// That a handle somebody gave us is a stream of this device, as far as the driver tells: kArgument if not.
Status CheckForeign(Context& context, CUstream handle);

}  // namespace millrace::cuda
