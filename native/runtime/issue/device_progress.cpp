#include "runtime/issue/device_progress.h"

#include <algorithm>
#include <utility>

#include "runtime/device_access.h"
#include "runtime/device_loss.h"

namespace millrace {

void DeviceProgress::NoteIssued(StreamState& stream) {
  if (!device_.needs_polling()) return;
  stream.needs_word = true;
  if (!std::exchange(stream.is_unfinished, true)) unfinished_.push_back(&stream);
}

void DeviceProgress::Signal() {
  for (StreamState* const stream : unfinished_) {
    if (stream->backend == nullptr || !std::exchange(stream->needs_word, false)) continue;
    // A recorded timeline has the end of what has completed already, too.
    if (stream->Completed() < stream->accepted || stream->WantsTimes()) Note(stream->backend->Signal());
  }
}

bool DeviceProgress::IsAwaited() const {
  return std::any_of(unfinished_.begin(), unfinished_.end(),
                     [](const StreamState* stream) { return stream->IsAwaited(); });
}

bool DeviceProgress::ServeWaiters() {
  bool is_awaited = false;
  std::erase_if(unfinished_, [&](StreamState* stream) {
    if (const Ticket wanted = stream->Wanted(); wanted != 0 && wanted <= stream->accepted && stream->backend != nullptr)
      Note(stream->backend->Resolve(wanted).status());
    const bool is_unfinished = IsUnfinished(*stream);
    is_awaited |= is_unfinished && stream->IsWantedOfDevice();
    return !is_unfinished;
  });
  return is_awaited && !loss_.is_lost();
}

bool DeviceProgress::Check() {
  if (loss_.is_lost()) return false;
  std::erase_if(unfinished_, [&](StreamState* stream) {
    if (stream->backend != nullptr && stream->Completed() < stream->accepted) {
      Note(stream->backend->Check());
      Note(stream->backend->Query());
      // It may have had too many words on their way when it was signalled last.
      Note(stream->backend->Signal());
    }
    return !IsUnfinished(*stream);
  });
  return !unfinished_.empty() && !loss_.is_lost();
}

bool DeviceProgress::IsUnfinished(StreamState& stream) {
  const Ticket completed = stream.Completed();
  stream.Progress(completed);
  // A ticket that the host completed, or a destroyed stream's last, is no ticket of the device's.
  stream.is_unfinished = stream.backend != nullptr && completed < stream.accepted;
  return stream.is_unfinished;
}

void DeviceProgress::Note(const Status& status) {
  if (status.code() == StatusCode::kDeviceLost) loss_.Mark(status);
}

}  // namespace millrace
