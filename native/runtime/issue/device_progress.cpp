#include "runtime/issue/device_progress.h"

#include <utility>

#include "runtime/channel.h"

namespace millrace {

void DeviceProgress::NoteIssued(StreamState& stream) {
  if (!device_.needs_polling()) return;
  // Nobody looks after a record before it is issued.
  if (stream.IsWantedOfDevice()) channel_.WatchIfPolled(stream);
  if (!std::exchange(stream.is_dirty, true)) dirty_.push_back(&stream);
}

void DeviceProgress::Signal() {
  if (!dirty_.empty()) recent_ = dirty_;
  for (StreamState* stream : dirty_) {
    stream->is_dirty = false;
    if (stream->backend != nullptr) SignalStream(*stream);
  }
  dirty_.clear();
}

void DeviceProgress::SignalStream(StreamState& stream) {
  if (const Status status = stream.backend->Signal(); status.code() == StatusCode::kDeviceLost) loss_.Mark(status);
}

void DeviceProgress::TellWritten() {
  if (!device_.needs_polling()) return;
  for (StreamState* stream : recent_) {
    const Ticket wanted = stream->Wanted();
    if (wanted == 0) continue;
    if (const Ticket completed = stream->Completed(); completed >= wanted) stream->Progress(completed);
  }
}

bool DeviceProgress::Poll() {
  if (!device_.needs_polling() || loss_.is_lost()) return false;
  bool is_unfinished = false;
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    StreamState& stream = streams_.At(n);
    if (stream.backend == nullptr) continue;
    if (stream.Completed() < stream.accepted) {
      if (const Status status = stream.backend->Check(); status.code() == StatusCode::kDeviceLost) {
        loss_.Mark(status);
        return false;
      }
      // It may have had too many words on their way when it was signalled last.
      SignalStream(stream);
    }
    // Told also when there was nothing to ask: the device may have written its word since somebody asked for a wake.
    const Ticket completed = stream.Completed();
    stream.Progress(completed);
    is_unfinished |= completed < stream.accepted;
  }
  return is_unfinished;
}

}  // namespace millrace
