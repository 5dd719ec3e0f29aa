#include "runtime/peers.h"

#include <chrono>
#include <thread>
#include <utility>

#include "runtime/channel.h"

namespace millrace {

std::optional<protocol::PeerRoute> PeerRoutes::Find(uint32_t from, std::shared_ptr<StreamWaker> waker,
                                                    uint32_t stream) {
  std::lock_guard lock(mutex_);
  RouteProbe& probe = probes_[from];
  if (!probe.route) probe.waiting.Add(std::move(waker), stream);
  return probe.route;
}

void PeerRoutes::Set(uint32_t from, protocol::PeerRoute route) {
  WaitingStreams waiting;
  {
    std::lock_guard lock(mutex_);
    RouteProbe& probe = probes_[from];
    probe.route = route;
    waiting = std::exchange(probe.waiting, {});
  }
  waiting.Wake();
}

void PeerRoutes::WakeAll() {
  WaitingStreams waiting;
  {
    std::lock_guard lock(mutex_);
    for (auto& [from, probe] : probes_) waiting.Add(std::exchange(probe.waiting, {}));
  }
  waiting.Wake();
}

void PeerUsers::Add(std::weak_ptr<Channel> user, StreamState& stream, Ticket ticket) {
  std::lock_guard lock(mutex_);
  uses_[&stream] = {std::move(user), ticket};
  if (uses_.size() < prune_at_) return;
  std::erase_if(uses_, [](const auto& use) { return use.second.user.expired(); });
  prune_at_ = 2 * uses_.size();
}

std::vector<PeerUsers::Point> PeerUsers::Unfinished() {
  std::vector<Point> points;
  // Let go of without the lock: the last holder of a channel destroys it.
  std::vector<std::shared_ptr<Channel>> users;
  std::lock_guard lock(mutex_);
  for (const auto& [stream, use] : uses_) {
    std::shared_ptr<Channel> user = use.user.lock();
    if (user == nullptr) continue;
    if (stream->Completed() < use.until) points.push_back({user->id(), stream->index(), use.until});
    users.push_back(std::move(user));
  }
  return points;
}

void PeerUsers::Await() {
  std::unordered_map<StreamState*, Use> uses;
  {
    std::lock_guard lock(mutex_);
    uses.swap(uses_);
  }
  for (auto& [stream, use] : uses) {
    // A closed channel has ended its work. An open one is polled: nothing wakes this thread any more, and callers that
    // wait for its end have a deadline.
    while (const std::shared_ptr<Channel> user = use.user.lock()) {
      // A lost device runs nothing any more, but its blocking-calls thread may still copy bytes.
      if (user->LostStatus() == StatusCode::kDeviceLost && !stream->has_blocking_call.load()) break;
      {
        std::lock_guard lock(user->access().streams_mutex());
        // A closed stream was drained, and its backend stream may be gone.
        if (stream->backend == nullptr || stream->Completed() >= use.until) break;
        if (stream->Issued() >= use.until && !stream->backend->Resolve(use.until).ok()) break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

}  // namespace millrace
