// The memory of a launch that its device does not own: arrays of other devices, and pinned arrays.
//
// It is found as the ends of a copy are: in the tables of its device, under a lock. If it is not there yet, the stream
// waits as it does for memory of its own device. The other devices do not close while the launch is issued, and free
// their memory only when it has completed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/failures.h"
#include "runtime/in_flight.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel. Of one launch. It holds the streams_mutex() of each other device, in the order of the channels'
/// ids.
class Elsewhere {
 public:
  /// `needs_grants`: as hal::Kernel::NeedsGrants.
  Elsewhere(Channel& channel, DeviceAccess& device, ResourceTables& tables, StreamWaits& waits, StreamState& stream,
            uint32_t reported, bool needs_grants)
      : channel_(channel),
        device_(device),
        tables_(tables),
        waits_(waits),
        stream_(stream),
        reported_(reported),
        needs_grants_(needs_grants) {}

  /// Opens the devices that the next `count` entries name.
  void Open(RecordReader entries, uint32_t count);

  enum class Sight : uint8_t { kFound, kLater, kMalformed };
  struct Found {
    std::byte* address = nullptr;  // Null if the launch cannot run.
    MemoryEntry* entry = nullptr;  // Null for host memory.
  };
  /// The memory of the entry `arg`, behind the ELSEWHERE entry `where`. With kLater, the stream is parked.
  Sight Find(const protocol::LaunchArg& where, const protocol::LaunchArg& arg, Found& found);

  /// Why the launch cannot run although all was found.
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] FailureId CauseOfHost() const;
  [[nodiscard]] std::span<const HostUse> host() const { return host_; }
  [[nodiscard]] bool is_foreign() const { return !locks_.empty(); }
  /// The launch was issued.
  void NoteUse(Ticket ticket);

 private:
  struct Home {
    uint32_t id = 0;
    std::shared_ptr<Channel> channel;
    bool is_gone = false;  // Lost or closed.
  };
  Home& HomeOf(uint32_t device);
  bool IsOwn(const Home& home) const { return home.channel.get() == &channel_; }
  Sight FindDevice(Home& home, const protocol::LaunchArg& where, const protocol::LaunchArg& arg, Found& found);
  Sight FindHost(Home& home, const protocol::LaunchArg& where, const protocol::LaunchArg& arg, Found& found);
  Sight ParkFor(const Home& home, ParkReason reason);
  void FailOnce(Failure failure);

  Channel& channel_;
  DeviceAccess& device_;
  ResourceTables& tables_;
  StreamWaits& waits_;
  StreamState& stream_;
  const uint32_t reported_;  // From the header of the record.
  const bool needs_grants_;
  std::vector<Home> homes_;
  std::vector<std::unique_lock<std::mutex>> locks_;
  std::vector<MemoryRef> held_;
  std::vector<HostUse> host_;
  std::optional<Failure> failure_;
};

}  // namespace millrace
