// The system's message for a failure, such as dlerror()'s. It is kept outside the Status, which never allocates.
#pragma once

#include <string>
#include <utility>

#include "hal/status.h"

namespace millrace {

/// The message of the thread's latest failure with one, and the note of its Status.
struct Explanation {
  const char* note = nullptr;
  std::string text;

  static Explanation& Latest() {
    thread_local Explanation latest;
    return latest;
  }

  /// Makes a Status with this note and stores the system's message for it.
  [[nodiscard]] static Status Fail(StatusCode code, const char* note, std::string text) {
    Latest() = {note, std::move(text)};
    return Status(code, note);
  }

  /// Returns and removes the message for this Status; empty when there is none.
  [[nodiscard]] static std::string Take(const Status& status) {
    Explanation& latest = Latest();
    if (latest.note != status.note()) return {};
    latest.note = nullptr;
    return std::exchange(latest.text, {});
  }
};

}  // namespace millrace
