// How far the device has come with what was issued, for a device that does not tell by itself.
//
// The channel has the device write words when no more records come, and looks at the words while it is awake.
// It asks the device where no word comes: within a backlog, and beside large copies.
#pragma once

#include <vector>

#include "runtime/channel_parts.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class DeviceProgress {
 public:
  explicit DeviceProgress(const ChannelParts& parts) : device_(parts.device), loss_(parts.loss) {}

  /// A record of the stream was issued.
  void NoteIssued(StreamState& stream);
  /// Asks about all streams that may not have come to their end, and wakes who waits for what has completed.
  /// `has_work` is called before each question; once it returns true, no further stream is asked about. True if
  /// somebody still waits for what the device has.
  template <typename HasWork>
  bool Query(HasWork has_work);
  /// The device writes the words of the streams that had records issued since the last call.
  void Signal();
  /// Whether somebody waits for a stream that may not have come to its end.
  [[nodiscard]] bool IsAwaited() const;
  /// Asks only about the streams that somebody waits for, and wakes who waits. True if somebody still waits.
  bool ServeWaiters();
  /// Whether a stream has not come to its end. Finds out whether the device was lost, which no word tells.
  bool Check();

 private:
  /// Wakes who waits for what the stream has completed. False when it has come to its end.
  bool IsUnfinished(StreamState& stream);
  void Note(const Status& status);

  DeviceAccess& device_;
  DeviceLoss& loss_;
  std::vector<StreamState*> unfinished_;  // All that may be.
};

template <typename HasWork>
bool DeviceProgress::Query(HasWork has_work) {
  bool is_awaited = false;
  for (size_t n = 0; n < unfinished_.size() && !has_work();) {
    StreamState& stream = *unfinished_[n];
    if (stream.backend != nullptr) Note(stream.backend->Query());
    if (IsUnfinished(stream)) {
      is_awaited |= stream.IsWantedOfDevice();
      ++n;
    } else {
      unfinished_[n] = unfinished_.back();
      unfinished_.pop_back();
    }
  }
  return is_awaited;
}

}  // namespace millrace
