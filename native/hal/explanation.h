// What the system said of a failure in words of its own, such as dlerror(): a Status carries none, because it is never
// allocated.
#pragma once

#include <string>
#include <utility>

#include "hal/status.h"

namespace millrace {

/// The latest failure of this thread that was explained, by the note of its Status.
struct Explanation {
  const char* note = nullptr;
  std::string text;

  static Explanation& Latest() {
    thread_local Explanation latest;
    return latest;
  }

  /// A Status with this note, of which the system said this.
  [[nodiscard]] static Status Fail(StatusCode code, const char* note, std::string text) {
    Latest() = {note, std::move(text)};
    return Status(code, note);
  }

  /// What was said of this Status, empty when nothing was. Forgets it.
  [[nodiscard]] static std::string Take(const Status& status) {
    Explanation& latest = Latest();
    if (latest.note != status.note()) return {};
    latest.note = nullptr;
    return std::exchange(latest.text, {});
  }
};

}  // namespace millrace
