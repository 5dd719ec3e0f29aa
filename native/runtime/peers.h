// What one device has to do with others: how copies from each travel to it, and which of their streams use its memory.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "hal/hal.h"
#include "runtime/streams.h"

namespace millrace {

class Channel;

/// The routes that lead to a device, by the channel of the device they come from. Thread: any.
class PeerRoutes {
 public:
  /// Nothing while the route was not tried; the stream is then woken.
  std::optional<protocol::PeerRoute> Find(uint32_t from, std::shared_ptr<StreamWaker> waker, uint32_t stream);
  void Set(uint32_t from, protocol::PeerRoute route);
  /// Wakes everybody: the device is lost or closed.
  void WakeAll();

 private:
  struct RouteProbe {
    std::optional<protocol::PeerRoute> route;
    WaitingStreams waiting;
  };
  std::mutex mutex_;
  std::unordered_map<uint32_t, RouteProbe> probes_;  // Guarded by mutex_.
};

/// Which streams of other channels were given work that uses memory of this device, so that it waits for their end
/// before it lets its memory go. Order is none of its business: owners see to that.
class ForeignUses {
 public:
  /// `stream` of `user` uses memory here until it completed `ticket`, whatever becomes of that record. Thread: the
  /// user's channel, while this device cannot close.
  void Add(std::weak_ptr<Channel> user, StreamState& stream, Ticket ticket);
  /// Thread: the device's channel, on the way out. Blocks.
  void Await();

 private:
  struct Use {
    std::weak_ptr<Channel> user;
    Ticket until = 0;
  };
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<StreamState*, Use> uses_;  // A stream's last use is its only entry.
  size_t prune_at_ = 64;
};

}  // namespace millrace
