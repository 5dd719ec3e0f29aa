// Threads that share a device which another thread opened, and what happens to their streams and memory when they go:
// by closing, by an exception, or by worker.terminate() at any moment.
//
// A thread that has left submits nothing. What it submitted before runs to its end, since streams of other threads may
// wait for it. The last of its streams that ends frees the memory, the events and the graphs that the thread had not
// freed.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/device_loss.h"
#include "runtime/peers.h"
#include "runtime/resource_tables.h"
#include "runtime/stream_table.h"
#include "runtime/submission_queue.h"
#include "runtime/thread_inbox.h"

namespace millrace {

/// Thread: channel, unless a function names another.
class OwnerCleanup {
 public:
  OwnerCleanup(StreamTable& streams, SubmissionQueue& submissions, ResourceTables& tables, PeerUsers& users,
               const DeviceLoss& loss, ThreadInbox& inbox)
      : streams_(streams), submissions_(submissions), tables_(tables), users_(users), loss_(loss), inbox_(inbox) {}

  /// The thread is gone. Calls `done` once when nothing of it is left, on the channel's thread or at once. Thread: any.
  void OwnerLeft(uint32_t owner_id, std::function<void()> done);
  /// If the stream is the last one of a thread that left, submits the frees of what that left behind. False: nothing
  /// was.
  bool FreeLeftBehind(StreamState& stream);
  /// A stream of this thread was destroyed, and its slot is free.
  void StreamEnded(uint32_t owner_id);
  /// The device has closed, and everything of everybody went with it.
  void TellAll();

 private:
  /// A thread that submits nothing any more.
  struct Leaving {
    uint32_t streams = 0;  // Not destroyed yet.
    std::vector<std::function<void()>> callbacks;
  };
  void End(uint32_t owner_id, std::function<void()> done);

  StreamTable& streams_;
  SubmissionQueue& submissions_;
  ResourceTables& tables_;
  PeerUsers& users_;
  const DeviceLoss& loss_;
  ThreadInbox& inbox_;
  std::unordered_map<uint32_t, Leaving> leaving_;
  /// Threads that left memory and no stream, while every slot for streams is taken, and whom to tell of their end.
  std::vector<std::pair<uint32_t, std::function<void()>>> awaiting_slot_;
};

}  // namespace millrace
