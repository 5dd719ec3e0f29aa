// One LAUNCH_GRAPH or UPLOAD_GRAPH record that is being issued: finds what the graph names, lets the blocking-calls
// thread build it, and launches it or brings it to the device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/failures.h"
#include "runtime/graphs.h"
#include "runtime/issue/copy_work.h"
#include "runtime/issue/issue_parts.h"
#include "runtime/issue/outputs.h"
#include "runtime/record_reader.h"
#include "runtime/stream_state.h"

namespace millrace {

class CopyRecords;

struct GraphParts : IssueParts {
  CopyRecords& copies;
};

/// Lists of the launch that is being issued; they keep their memory.
struct GraphScratch {
  std::vector<MemoryUse> outputs;
  std::vector<MemoryUse> uses;
  std::vector<HostUse> host;
};

/// Thread: channel. Holds the streams_mutex() of each other device that the graph names, in the order of their ids.
class GraphLaunch {
 public:
  /// `entries`: of a launch; none for an upload.
  GraphLaunch(const GraphParts& parts, GraphScratch& scratch, StreamState& stream, Ticket ticket,
              const protocol::RecordHeader& header, GraphEntry& graph,
              std::optional<std::vector<protocol::LaunchArg>> entries)
      : parts_(parts),
        channel_(parts.channel),
        scratch_(scratch),
        stream_(stream),
        ticket_(ticket),
        reported_(header.reported),
        graph_(graph),
        is_upload_(!entries),
        entries_(std::move(entries).value_or(std::vector<protocol::LaunchArg>())) {}
  Outcome Issue(const GraphRef& graph);

 private:
  /// How the record ends, or parks, before it is launched; nothing if it goes on.
  using Ended = std::optional<Outcome>;
  struct Home {
    uint32_t id = 0;
    std::shared_ptr<Channel> channel;
    bool is_gone = false;  // Lost or closed.
  };
  /// What the node that is being planned reads and writes.
  struct Accesses {
    std::vector<uint32_t> reads;
    std::vector<GraphPlan::Write> writes;
  };

  Ended OpenHomes();
  Home& HomeOf(uint32_t device);
  bool IsOwn(const Home& home) const { return home.channel.get() == &channel_; }

  Ended MakePlan();
  /// The nodes of the graph or of a body, which become `part`.
  Ended AddPart(const std::vector<GraphDefinition::Node>& nodes, std::vector<hal::GraphNode>& part);
  Ended Add(Home& home, const protocol::NopRecord& record);
  Ended Add(Home& home, const GraphDefinition::Launch& launch);
  Ended Add(Home& home, const GraphDefinition::Copy& defined);
  Ended Add(Home& home, const GraphDefinition::CopyStrided& copy);
  Ended Add(Home& home, const GraphDefinition::Fill& fill);
  Ended Add(Home& home, const GraphDefinition::FillStrided& fill);
  Ended Add(Home& home, const protocol::RecordEventRecord& record);
  Ended Add(Home& home, const GraphDefinition::Condition& condition);
  Ended FindKernel(Home& home, const protocol::LaunchRecord& record, hal::GraphKernel& kernel);
  Ended FindCopyEnd(CopyWork& copy, CopyEnd& end);
  Ended AddSlotCopy(Home& home, CopyWork& copy, const GraphDefinition::Copy& defined);
  Ended AddSlotFill(Home& home, const GraphDefinition::Fill& fill);
  void AddHostUse(const HostUse& use);
  void AddHostUses(const CopyWork& copy);
  /// Memory that a kernel uses and its device does not own: the entry `arg` behind the ELSEWHERE entry `where`.
  Ended FindElsewhere(const protocol::LaunchArg& where, const protocol::LaunchArg& arg, hal::GraphKernel& kernel,
                      uint64_t& param);
  /// Host memory at an end of the copy of the last node.
  Ended CheckHostMemory(const CopyWork& copy);
  void AddPatch(uint32_t param, uint32_t entry, std::optional<uint32_t> slot = std::nullopt, uint64_t offset = 0);
  /// The copy or fill of the last node writes the slot.
  void AddSlotWrite(uint32_t slot, bool is_whole);
  /// Memory of a device's table. `found` is null if the device is gone.
  Ended FindMemory(Home& home, uint32_t handle, MemoryRef& found);
  /// Its number in the plan.
  uint32_t NumberOf(Home& home, const MemoryRef& entry, uint32_t handle);
  void AddWrite(Home& home, const MemoryRef& entry, uint32_t handle, bool is_whole);
  void AddRead(Home& home, const MemoryRef& entry, uint32_t handle);
  hal::GraphNode& Node() { return part_->back(); }
  /// The index of the node, or of the outermost condition around it.
  [[nodiscard]] uint32_t NodeIndex() const { return static_cast<uint32_t>(plan_->nodes.size() - 1); }
  /// Where the node is, if it is in a body.
  [[nodiscard]] GraphPlan::Place PlaceOfNode() const;

  Ended FindSlots();
  Ended CheckFixed();
  MemoryRef& MemoryOf(uint32_t number);
  void ListOutputs();
  /// What it uses of host memory.
  void ListHostUses();
  FailureId Cause();
  /// Whether a copy or fill that should overwrite the memory of the slot overwrites only a part: the rest counts as
  /// read.
  [[nodiscard]] bool LeavesRest(size_t slot);
  /// The bytes that copies and fills use of the memory of a slot.
  [[nodiscard]] uint64_t ReachOf(const GraphPlan::Slot& slot) const;
  Ended FailOfKernels();
  Ended FailOfLimits();
  Outcome Fail(Failure failure);
  Outcome Malformed();
  [[nodiscard]] Outputs Written() const {
    return {.memory = scratch_.outputs, .host = is_upload_ ? std::span<const HostUse>() : plan_->host};
  }

  bool TakeFaultSlots();
  void AddFaultPatches(std::vector<hal::GraphPatch>& patches);
  [[nodiscard]] uint64_t ValueOf(const GraphPlan::Patch& patch);
  Outcome Build(const GraphRef& graph);
  Outcome FailOfBuild(Status status);
  Ended FindFaultSet();
  Status MakeEvents();
  Outcome Launch();
  Outcome Upload();
  Outcome FailOfCall(Status status);
  void NoteUse();
  /// As FaultReports::Enter.
  FailureId Enter();

  const GraphParts& parts_;
  Channel& channel_;
  GraphScratch& scratch_;
  StreamState& stream_;
  const Ticket ticket_;
  const uint32_t reported_;  // From the header of the record.
  GraphEntry& graph_;
  const bool is_upload_;
  const std::vector<protocol::LaunchArg> entries_;
  std::vector<Home> homes_;
  std::vector<std::unique_lock<std::mutex>> locks_;
  std::unique_ptr<GraphPlan> made_;  // A plan that is not the graph's yet.
  GraphPlan* plan_ = nullptr;
  std::vector<hal::GraphNode>* part_ = nullptr;  // The nodes that are being planned.
  GraphPlan::Place bodies_;                      // The conditions around them, each with the body.
  Accesses accesses_;
  std::vector<MemoryRef> slots_;                           // The memory of the plan's slots.
  std::vector<std::unique_ptr<hal::EventHandle>> events_;  // For the plan's records, of this launch.
  uint32_t fault_set_ = 0;                                 // The number of the launch's set of fault slots.
  /// The channel of a device that is gone, 0 for memory that will never be registered; nothing if all is there.
  std::optional<uint32_t> gone_;
};

}  // namespace millrace
