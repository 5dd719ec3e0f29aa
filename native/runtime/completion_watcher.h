// The process's watcher thread: while there are waiters, it polls the streams of devices that cannot notify the host.
//
// It spins for at most 50 us, and only with 4 or more cores. Then it sleeps for a twentieth of the time waited so far
// between polls: at most 50 us in the first 20 ms, later at most 1 ms. Without waiters it sleeps until the next Watch.
#pragma once

#include <memory>

#include "runtime/channel.h"

namespace millrace {

class CompletionWatcher {
 public:
  /// Never destroyed, because its thread may outlive every static object.
  static CompletionWatcher& Instance();

  /// Starts the thread unless it runs already. Call it before the first Watch. kUnavailable if it cannot be started;
  /// the next call tries again. Thread: any.
  Status Start();
  /// Watches a stream until no issued record of it has a waiter. Thread: any.
  void Watch(std::shared_ptr<Channel> channel, StreamState& stream);

 private:
  struct State;
  CompletionWatcher();
  void Run();
  State* state_;
};

}  // namespace millrace
