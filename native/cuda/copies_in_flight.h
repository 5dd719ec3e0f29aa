// The large copies of one device that may not have completed.
//
// A write of a timeline word waits until the copies of all streams before it have reached their memory, so while it is
// in a queue, copies of several streams run one after the other: three streams that each send 16 MiB up and down took
// 1.6 times as long. So no word is written while another stream copies much; the events tell the progress then.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hal/hal.h"

namespace millrace::cuda {

class Stream;

/// Thread: channel.
class CopiesInFlight {
 public:
  void Note(Stream& stream, hal::Ticket ticket, uint64_t bytes);
  void Forget(const Stream& stream);
  /// Whether a stream other than this one has a large copy that has not completed. Asks the driver about one of them.
  [[nodiscard]] bool HasOtherThan(const Stream& stream);

 private:
  std::vector<std::pair<Stream*, hal::Ticket>> last_;  // Of each stream that may have one.
};

}  // namespace millrace::cuda
