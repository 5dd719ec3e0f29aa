// The entry of an event in the table of handles.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "hal/hal.h"
#include "runtime/stream_state.h"

namespace millrace {

/// An event of the driver: for timing, or for other processes. Thread: channel.
struct EventEntry {
  /// A record by one launch of a graph, which has a driver event of its own.
  struct Launched {
    std::unique_ptr<hal::EventHandle> event_handle;
    StreamState* stream = nullptr;
    Ticket ticket = 0;
    [[nodiscard]] bool IsOver() const { return stream->Completed() >= ticket; }
  };

  std::unique_ptr<hal::EventHandle> event_handle;  // Null for an event of graphs.
  protocol::EventKind kind = protocol::EventKind::kTiming;
  StreamState* stream = nullptr;  // Of the last record; null before the first, and for an event of graphs.
  Ticket ticket = 0;
  bool is_of_graph = false;
  /// For an event of graphs: the launches in flight, and the last one that has completed. In the order of their issue.
  std::vector<Launched> launched;

  void NoteLaunch(StreamState& launching, Ticket last, std::unique_ptr<hal::EventHandle> made) {
    launched.push_back({std::move(made), &launching, last});
    const auto newest =
        std::find_if(launched.rbegin(), launched.rend(), [](const Launched& each) { return each.IsOver(); });
    if (newest == launched.rend()) return;
    // Those before it that are not over may still be recorded.
    const auto end = newest.base() - 1;
    launched.erase(std::remove_if(launched.begin(), end, [](const Launched& each) { return each.IsOver(); }), end);
  }
};
using EventRef = std::shared_ptr<EventEntry>;

}  // namespace millrace
