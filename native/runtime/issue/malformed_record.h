// A record that cannot be issued because of what it says: it names memory that is not there, a range outside of it, or
// is too short. It comes from a mistake of the library, or of a thread that freed what another one still uses.
//
// Such a record fails as others do: what it would have written is poisoned, as far as that can be read. Otherwise a
// read behind it would give the bytes from before.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph_definition.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/issue/outputs.h"
#include "runtime/memory_entry.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

/// Thread: channel. Of one record; it holds no lock of another device.
class MalformedRecord {
 public:
  MalformedRecord(const IssueParts& parts, StreamState& stream, Ticket ticket, const Record& record)
      : parts_(parts), stream_(stream), ticket_(ticket), record_(record) {}
  Outcome Fail();

 private:
  void AddWritten(uint32_t device, const Record& record);
  void AddLaunch(uint32_t device, std::span<const protocol::LaunchArg> args);
  template <typename Copy>
  void AddCopy(const Copy& copy);
  void AddGraph(uint32_t handle, std::span<const protocol::LaunchArg> entries);
  void AddNodes(const std::vector<GraphDefinition::Node>& nodes);
  void AddMemory(uint32_t device, uint32_t handle);
  void AddHost(uint32_t device, uint32_t handle, uint64_t offset, uint64_t bytes, bool is_staged);
  /// The record should have bound this handle: what names it must not wait for that.
  void BindPoisoned(uint32_t handle, uint64_t bytes, FailureId failure);
  void BindMade(FailureId failure);

  const IssueParts& parts_;
  StreamState& stream_;
  const Ticket ticket_;
  const Record& record_;
  std::vector<MemoryUse> memory_;
  std::vector<MemoryRef> held_;
  std::vector<HostUse> host_;
};

}  // namespace millrace
