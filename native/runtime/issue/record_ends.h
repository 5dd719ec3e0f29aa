// How a record ends without work for the device: its ticket completes, with or without a failure. A failed record
// poisons what it would have written, and completes its ticket in stream order.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/failures.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/issue/outputs.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel.
class RecordEnds {
 public:
  explicit RecordEnds(const ChannelParts& parts) : loss_(parts.loss), faults_(parts.faults) {}

  /// There is nothing, or nothing more, for the device to do.
  Outcome CloseTicket(StreamState& stream, Ticket ticket);
  Outcome Fail(StreamState& stream, Ticket ticket, const Failure& failure, const Outputs& outputs);
  /// As Fail, unless the driver's answer is that the device is lost.
  Outcome FailDriver(StreamState& stream, Ticket ticket, Status status, uint32_t kernel, const Outputs& outputs);
  /// The end of a record that cannot run although all it names was found: its stream is poisoned or could not be
  /// created, or `cause` poisoned what it reads. Nothing when it can.
  std::optional<Outcome> FailUnready(StreamState& stream, Ticket ticket, FailureId cause, const Outputs& outputs) {
    if (stream.poisoned_by == 0 && cause == 0 && stream.backend != nullptr) return std::nullopt;
    return EndUnready(stream, ticket, cause, outputs);
  }
  /// Something that it reads was poisoned by the failure `cause`.
  Outcome FailUpstream(StreamState& stream, Ticket ticket, FailureId cause, const Outputs& outputs);
  Outcome FailPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs);
  /// A copy names memory of a device that is lost or closed. `device`: the channel of the one that is gone, or 0.
  Outcome FailGone(StreamState& stream, Ticket ticket, const Outputs& outputs, uint32_t device);
  /// The stream waits for a device that is lost: this and every later record of it fails, each in its order.
  Outcome Poison(StreamState& stream, Ticket ticket, uint32_t device);
  /// The driver refused a wait that nothing can replace: as Poison, since every later record relies on the wait.
  Outcome FailWait(StreamState& stream, Ticket ticket, Status status);

  /// The failure alone; the ticket is still open. Returns the failure's id.
  FailureId RecordFailure(StreamState& stream, Ticket ticket, Failure failure, const Outputs& outputs);
  void RecordPoisoned(StreamState& stream, Ticket ticket, const Outputs& outputs);

  [[nodiscard]] static Status NoStream();

 private:
  Outcome EndUnready(StreamState& stream, Ticket ticket, FailureId cause, const Outputs& outputs);

  DeviceLoss& loss_;
  FaultReports& faults_;
};

}  // namespace millrace
