// The text that the system gave for a failure, such as dlerror(). A Status has no room for it, because it never
// allocates.
#pragma once

#include <string>
#include <utility>

#include "hal/status.h"

namespace millrace {

/// The text of the thread's latest failure that had one, with the note of its Status.
struct Explanation {
  const char* note = nullptr;
  std::string text;

  static Explanation& Latest() {
    thread_local Explanation latest;
    return latest;
  }

  /// Makes a Status with this note and keeps the system's text for it.
  [[nodiscard]] static Status Fail(StatusCode code, const char* note, std::string text) {
    Latest() = {note, std::move(text)};
    return Status(code, note);
  }

  /// The text for this Status, empty when there is none. Removes it.
  [[nodiscard]] static std::string Take(const Status& status) {
    Explanation& latest = Latest();
    if (latest.note != status.note()) return {};
    latest.note = nullptr;
    return std::exchange(latest.text, {});
  }
};

}  // namespace millrace
