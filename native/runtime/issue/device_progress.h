// How far the device has come with what was issued. Some devices report progress by writing a word: the channel must
// request that write, and a thread must read the word.
#pragma once

#include <vector>

#include "runtime/channel_parts.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class DeviceProgress {
 public:
  explicit DeviceProgress(const ChannelParts& parts)
      : channel_(parts.channel), device_(parts.device), streams_(parts.streams), loss_(parts.loss) {}

  /// A record of the stream was issued.
  void NoteIssued(StreamState& stream);
  /// The device writes the words of all streams that had records issued since the last call.
  void Signal();
  /// Wakes who waits for a word of Signal's last call that has been written.
  void TellWritten();
  /// Asks the device about every stream. True if one has not come to its end.
  bool Poll();

 private:
  void SignalStream(StreamState& stream);

  Channel& channel_;
  DeviceAccess& device_;
  StreamTable& streams_;
  DeviceLoss& loss_;
  std::vector<StreamState*> dirty_;   // Issued on since the last Signal.
  std::vector<StreamState*> recent_;  // Signalled last.
};

}  // namespace millrace
