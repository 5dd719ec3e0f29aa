// A device's relations to other devices: the routes of copies to it, the streams of other devices that use its memory,
// and their graphs that name it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hal/hal.h"
#include "runtime/graphs.h"
#include "runtime/stream_state.h"

namespace millrace {

class Channel;

/// The routes that lead to a device, by the channel of the device they come from. Thread: any.
class PeerRoutes {
 public:
  /// Nothing while the route is not tested yet; the stream is woken after the test.
  std::optional<protocol::PeerRoute> Find(uint32_t from, std::shared_ptr<StreamWaker> waker, uint32_t stream);
  void Set(uint32_t from, protocol::PeerRoute route);
  /// Wakes all waiting streams: the device is lost or closed.
  void WakeAll();

 private:
  struct RouteProbe {
    std::optional<protocol::PeerRoute> route;
    WaitingStreams waiting;
  };
  std::mutex mutex_;
  std::unordered_map<uint32_t, RouteProbe> probes_;  // Guarded by mutex_.
};

/// The peer users: streams of other channels with work that uses memory of this device, which waits for the end of that
/// work before it frees its memory. Owners order uses of the same memory; this class does not.
class PeerUsers {
 public:
  /// `stream` of `user` uses memory of this device until it completes `ticket`, also if that record fails. Thread: the
  /// user's channel, while this device cannot close.
  void Add(std::weak_ptr<Channel> user, StreamState& stream, Ticket ticket);
  /// The last uses that have not completed. Thread: the channel of the device.
  struct Point {
    uint32_t device;
    uint32_t stream;
    Ticket ticket;
  };
  std::vector<Point> Unfinished();
  /// Blocks until all uses have ended. Thread: the device's channel, while it closes.
  void Await();

 private:
  struct Use {
    std::weak_ptr<Channel> user;
    Ticket until = 0;
  };
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<StreamState*, Use> uses_;  // Only the last use of each stream.
  size_t prune_at_ = 64;
};

struct Peers {
  PeerRoutes routes;
  PeerUsers users;
  PeerGraphs graphs;
};

}  // namespace millrace
