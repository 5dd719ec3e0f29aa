// The large copies of one device that may not have completed.
//
// A write of a timeline word waits until the copies of all streams before it have reached their memory, so while it is
// in a queue, copies of several streams run one after the other: three streams that each send 16 MiB up and down took
// 1.6 times as long. So no word is written while another stream copies, or this one copies much: its next copies may
// run beside others. The events tell the progress then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hal/hal.h"

namespace millrace::cuda {

class Stream;

/// Thread: channel, unless stated otherwise.
class CopiesInFlight {
 public:
  /// During a copy that is no record: of pageable memory, chunk by chunk. Thread: any.
  class Unqueued {
   public:
    Unqueued(CopiesInFlight& copies, uint64_t bytes);
    ~Unqueued();
    Unqueued(const Unqueued&) = delete;
    Unqueued& operator=(const Unqueued&) = delete;

   private:
    CopiesInFlight& copies_;
    const uint32_t count_;
  };

  void Note(Stream& stream, hal::Ticket ticket, uint64_t bytes);
  void Forget(const Stream& stream);
  /// Whether a word of this stream would hold up copies. Asks the driver about one of them.
  [[nodiscard]] bool KeepWordsAway(const Stream& stream);
  /// Whether several streams may be copying, so that words written before come late. Thread: any.
  [[nodiscard]] bool AreSeveral() const {
    return count_.load(std::memory_order_relaxed) > 1 || unqueued_.load(std::memory_order_relaxed) > 0;
  }

 private:
  struct Copy {
    Stream* stream;
    hal::Ticket ticket;
    uint64_t bytes;
  };

  std::vector<Copy> last_;  // Of each stream that may have one.
  std::atomic<size_t> count_{0};
  std::atomic<uint32_t> unqueued_{0};
};

}  // namespace millrace::cuda
