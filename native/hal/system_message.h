// The system's message for a failed call, such as the text of dlerror(). A Status never allocates, so the message is
// kept outside it.
#pragma once

#include <string>
#include <utility>

#include "hal/status.h"

namespace millrace {

/// The message of the thread's latest failure with one, and the note of its Status.
struct SystemMessage {
  const char* note = nullptr;
  std::string text;

  static SystemMessage& Latest() {
    thread_local SystemMessage latest;
    return latest;
  }

  /// Makes a Status with this note and stores the system's message for it.
  [[nodiscard]] static Status Fail(StatusCode code, const char* note, std::string text) {
    Latest() = {note, std::move(text)};
    return Status(code, note);
  }

  /// Returns and removes the message for this Status; empty when there is none.
  [[nodiscard]] static std::string Take(const Status& status) {
    SystemMessage& latest = Latest();
    if (latest.note != status.note()) return {};
    latest.note = nullptr;
    return std::exchange(latest.text, {});
  }
};

}  // namespace millrace
