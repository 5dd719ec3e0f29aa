// The process's one watcher: asks devices whose work ends elsewhere how far they came, while somebody waits.
//
// It spins at most 50 us, and only where there are cores to spare; then it sleeps a twentieth of the time waited so
// far, a millisecond at most. While nobody waits it sleeps for good.
#pragma once

#include <memory>

#include "runtime/channel.h"

namespace millrace {

class Watcher {
 public:
  /// Never destroyed, because its thread may outlive every static object.
  static Watcher& Instance();

  /// Starts the thread, unless it runs already. kUnavailable when it cannot be started; the next call tries again.
  /// Before the first Watch. Thread: any.
  Status Start();
  /// Watches a stream until nothing that it was issued is wanted any more. Thread: any.
  void Watch(std::shared_ptr<Channel> channel, StreamState& stream);

 private:
  struct State;
  Watcher();
  void Run();
  State* state_;
};

}  // namespace millrace
