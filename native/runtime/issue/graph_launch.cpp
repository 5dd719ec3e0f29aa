// More than 400 lines: all of one class.
#include "runtime/issue/graph_launch.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <shared_mutex>
#include <utility>

#include "runtime/channel.h"
#include "runtime/device_access.h"
#include "runtime/fault_reports.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/launches.h"

namespace millrace {

using protocol::ArgKind;

namespace {

/// Thread: blocking calls.
Status BuildOnBlockingThread(hal::Device& device, std::vector<hal::GraphNode> nodes,
                             const std::vector<std::shared_ptr<Channel>>& others,
                             const std::shared_ptr<BuiltGraph>& built) {
  // The other devices do not close meanwhile; later, they end the graph before they do. In the order of the ids.
  std::vector<std::shared_lock<std::shared_mutex>> locks;
  for (const std::shared_ptr<Channel>& other : others) {
    locks.push_back(other->access().KeepOpen());
    if (!locks.back().owns_lock()) return Status(StatusCode::kUpstream, "a device that the graph uses was closed");
    other->peers().graphs.Add(built);
  }
  auto graph = device.BuildGraph(std::move(nodes));
  if (graph.ok()) built->Set(std::move(graph).value());
  return graph.status();
}

constexpr uint32_t kNoEntry = GraphDefinition::kNoEntry;

void StopLoopsAt(const uint32_t* word, std::vector<hal::GraphNode>& nodes) {
  for (hal::GraphNode& node : nodes) {
    auto* const condition = std::get_if<hal::GraphCondition>(&node.work);
    if (condition == nullptr) continue;
    condition->stop = word;
    for (std::vector<hal::GraphNode>& body : condition->bodies) StopLoopsAt(word, body);
  }
}

}  // namespace

Outcome GraphLaunch::Issue(const GraphRef& graph) {
  if (!is_upload_) {
    if (const Ended ended = FindFaultSet()) return *ended;
  }
  if (const Ended ended = OpenHomes()) return *ended;
  if (graph_.plan != nullptr) {
    plan_ = graph_.plan.get();
  } else if (const Ended ended = MakePlan()) {
    return *ended;
  }
  scratch_.outputs.clear();
  if (!is_upload_) {
    if (const Ended ended = FindSlots()) return *ended;
    ListOutputs();
    ListHostUses();
  }
  if (const Ended ended = CheckFixed()) return *ended;
  if (gone_) {
    const Status status(StatusCode::kDeviceLost, "a device that the graph uses is lost or closed");
    return Fail({.status = status, .lost_device = *gone_});
  }
  if (const Ended ended = FailOfKernels()) return *ended;
  if (const auto failed = parts_.ends.FailUnready(stream_, ticket_, Cause(), Written())) return *failed;
  if (made_ != nullptr) {
    if (const Ended ended = FailOfLimits()) return *ended;
    if (plan_->unlocked_copy != hal::kNoNode) {
      const Status status(StatusCode::kState,
                          "its pinned memory could not be page-locked, which a graph needs: make a "
                          "smaller array, or copy outside of the graph");
      return Fail({.status = status, .node = plan_->unlocked_copy});
    }
    if (!TakeFaultSlots()) return Fail({.status = FaultReports::NoSlot()});
    graph_.plan = std::move(made_);
  }
  if (graph_.build == GraphEntry::Build::kNone && plan_->nodes.empty()) {
    return parts_.ends.CloseTicket(stream_, ticket_);
  }
  // Such nodes need memory that only a launch gives.
  if (is_upload_ && plan_->has_slot_copies && graph_.build == GraphEntry::Build::kNone) {
    return parts_.ends.CloseTicket(stream_, ticket_);
  }
  if (graph_.build != GraphEntry::Build::kDone) return Build(graph);
  return is_upload_ ? Upload() : Launch();
}

// ── What it names ──────────────────────────────────────────────────────────────────────────────────────────────────

GraphLaunch::Ended GraphLaunch::OpenHomes() {
  // In the order of the ids, so that two channels that lock each other cannot deadlock.
  for (const uint32_t device : graph_.definition->devices) {
    Home& home = homes_.emplace_back(Home{device, parts_.copies.HomeOf(device)});
    if (home.channel == nullptr) {
      home.is_gone = true;
    } else if (!IsOwn(home)) {
      if (&home.channel->backend() != &parts_.device.backend()) return Malformed();
      locks_.emplace_back(home.channel->access().streams_mutex());
      home.is_gone = home.channel->LostStatus() != StatusCode::kOk || home.channel->access().IfOpen() == nullptr;
    }
    if (home.is_gone && !gone_) gone_ = device;
  }
  return std::nullopt;
}

GraphLaunch::Home& GraphLaunch::HomeOf(uint32_t device) {
  return *std::find_if(homes_.begin(), homes_.end(), [&](const Home& home) { return home.id == device; });
}

GraphLaunch::Ended GraphLaunch::FindSlots() {
  for (const GraphPlan::Patch& patch : plan_->patches) {
    const auto kind = patch.slot ? ArgKind::kMemory : ArgKind::kScalar;
    if (entries_[patch.entry].kind != static_cast<uint8_t>(kind)) return Malformed();
  }
  slots_.resize(plan_->slots.size());
  for (size_t n = 0; n < slots_.size(); ++n) {
    const protocol::LaunchArg& entry = entries_[plan_->slots[n].entry];
    if (const Ended ended = FindMemory(HomeOf(plan_->slots[n].device), entry.handle, slots_[n])) return ended;
    if (slots_[n] == nullptr) continue;
    if (entry.value > slots_[n]->bytes || ReachOf(plan_->slots[n]) > slots_[n]->bytes - entry.value) return Malformed();
    if (plan_->slots[n].element_bytes != 0 && entries_[plan_->slots[n].count].value == 0) return Malformed();
  }
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::CheckFixed() {
  for (const GraphPlan::Fixed& fixed : plan_->fixed) {
    // It was freed although the graph names it. Only its own channel may ask.
    if (fixed.is_own && fixed.entry->address != nullptr && fixed.entry->memory == nullptr) return Malformed();
  }
  return std::nullopt;
}

MemoryRef& GraphLaunch::MemoryOf(uint32_t number) {
  return number < GraphPlan::kFirstSlot ? plan_->fixed[number].entry : slots_[number - GraphPlan::kFirstSlot];
}

void GraphLaunch::ListOutputs() {
  const auto add = [&](uint32_t number, Use use) {
    MemoryRef& memory = MemoryOf(number);
    if (memory != nullptr) scratch_.outputs.push_back({memory.get(), use});
  };
  for (const uint32_t number : plan_->outputs) add(number, Use::kWrite);
  for (const uint32_t number : plan_->overwritten) {
    const bool is_slot = number >= GraphPlan::kFirstSlot;
    if (is_slot && IsPart(entries_[plan_->slots[number - GraphPlan::kFirstSlot].entry].access)) continue;
    add(number, Use::kOverwrite);
  }
}

void GraphLaunch::ListHostUses() {
  scratch_.host = plan_->host;
  for (HostUse& use : scratch_.host) use.reported = reported_;
}

FailureId GraphLaunch::Cause() {
  FailureId cause = 0;
  if (is_upload_) {
    // It reads nothing, but the nodes need addresses.
    for (const GraphPlan::Fixed& fixed : plan_->fixed) {
      if (fixed.entry->address == nullptr) TakeFirst(cause, fixed.entry->poison.by());
    }
    return cause;
  }
  for (const uint32_t number : plan_->inputs) TakeFirst(cause, MemoryOf(number)->poison.by());
  for (size_t n = 0; n < slots_.size(); ++n) {
    const MemoryRef& slot = slots_[n];
    // Of what it only writes, memory that could not be allocated.
    if (slot->address == nullptr || LeavesRest(n)) TakeFirst(cause, slot->poison.by());
  }
  for (const HostUse& use : scratch_.host) {
    if (!use.is_write) TakeFirst(cause, use.range.poisoned_by(reported_));
  }
  return cause;
}

bool GraphLaunch::LeavesRest(size_t slot) {
  const GraphPlan::Slot& planned = plan_->slots[slot];
  return planned.is_covered && (entries_[planned.entry].value != 0 || ReachOf(planned) != slots_[slot]->bytes);
}

// ── Failures ───────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome GraphLaunch::Malformed() {
  return Outcome::kMalformed;
}

Outcome GraphLaunch::Fail(Failure failure) {
  return parts_.ends.Fail(stream_, ticket_, failure, Written());
}

GraphLaunch::Ended GraphLaunch::FailOfKernels() {
  for (const GraphPlan::Kernel& kernel : plan_->kernels) {
    if (kernel.entry.kernel != nullptr) continue;
    return Fail({.status = kernel.entry.failure, .kernel = kernel.record.kernel, .node = kernel.node});
  }
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::FailOfLimits() {
  for (const GraphPlan::Kernel& kernel : plan_->kernels) {
    std::optional<Failure> beyond = BeyondLimits(kernel.record, *kernel.entry.kernel);
    if (!beyond) continue;
    beyond->node = kernel.node;
    return Fail(*beyond);
  }
  return std::nullopt;
}

// ── Building ───────────────────────────────────────────────────────────────────────────────────────────────────────

uint64_t GraphLaunch::ValueOf(const GraphPlan::Patch& patch) {
  const uint64_t value = entries_[patch.entry].value;
  return patch.slot ? value + patch.offset + reinterpret_cast<uintptr_t>(slots_[*patch.slot]->address) : value;
}

Outcome GraphLaunch::Build(const GraphRef& graph) {
  if (graph_.TakeRefusal(stream_, ticket_)) return FailOfBuild(graph_.refusal);
  if (graph_.build == GraphEntry::Build::kRunning) {
    graph_.NoteWaiting(stream_, ticket_);
    return parts_.waits.Park(stream_, ParkReason::kBuild);
  }
  if (!is_upload_) {
    for (GraphPlan::Patch& patch : plan_->patches) {
      patch.value = ValueOf(patch);
      hal::SetParam(plan_->nodes[patch.node].work, patch.param, patch.value);
    }
  }
  if (const Status status = MakeEvents(); !status.ok()) return FailOfBuild(status);
  for (size_t n = 0; n < events_.size(); ++n) {
    std::get<hal::GraphRecord>(plan_->nodes[plan_->records[n].node].work).event = std::move(events_[n]);
  }
  std::vector<std::shared_ptr<Channel>> others;
  for (const Home& home : homes_) {
    if (!IsOwn(home)) others.push_back(home.channel);
  }
  // The channel outlives its blocking-calls thread's work.
  hal::Device& device = parts_.device.device();
  ThreadInbox& inbox = parts_.inbox;
  const auto nodes = std::make_shared<std::vector<hal::GraphNode>>(plan_->nodes);
  const Status started = parts_.blocking_calls.Do([&device, &inbox, graph, others, nodes, built = graph_.built] {
    const Status status = BuildOnBlockingThread(device, std::move(*nodes), others, built);
    inbox.Post([&inbox, graph, status] {
      for (const auto& [stream, ticket] : graph->EndBuild(status)) inbox.Wake(*stream);
    });
  });
  if (!started.ok())
    return FailOfBuild({StatusCode::kLaunchFailed, "starting the thread for blocking calls", started.driver_code()});
  graph_.build = GraphEntry::Build::kRunning;
  graph_.NoteWaiting(stream_, ticket_);
  return parts_.waits.Park(stream_, ParkReason::kBuild);
}

Outcome GraphLaunch::FailOfBuild(Status status) {
  if (status.code() == StatusCode::kUpstream) return Fail({.status = {StatusCode::kDeviceLost, status.note()}});
  if (status.code() == StatusCode::kOutOfMemory)
    return Fail({.status = status, .free_bytes = parts_.device.device().FreeBytes()});
  return parts_.ends.FailDriver(stream_, ticket_, status, 0, Written());
}

// ── Launching ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// A driver event for each record: a launch has its own, as the events of earlier launches may still be asked for.
Status GraphLaunch::MakeEvents() {
  events_.clear();
  for (size_t n = 0; n < plan_->records.size(); ++n) {
    auto made = parts_.device.device().CreateEvent(protocol::EventKind::kTiming);
    if (!made.ok()) return made.status();
    events_.push_back(std::move(made).value());
  }
  return {};
}

Outcome GraphLaunch::Launch() {
  if (const Status status = MakeEvents(); !status.ok())
    return parts_.ends.FailDriver(stream_, ticket_, status, 0, Written());
  if (const FailureId cause = Enter()) return parts_.ends.FailUpstream(stream_, ticket_, cause, Written());
  std::vector<hal::GraphPatch> patches;
  for (const GraphPlan::Patch& patch : plan_->patches) {
    const uint64_t value = ValueOf(patch);
    if (value != patch.value) patches.push_back({patch.node, patch.param, value});
  }
  AddFaultPatches(patches);
  for (size_t n = 0; n < events_.size(); ++n) {
    patches.push_back({plan_->records[n].node, hal::GraphPatch::kEvent, reinterpret_cast<uintptr_t>(events_[n].get())});
  }
  graph_.NoteLaunch(stream_, ticket_);
  const Status status = stream_.backend->LaunchGraph(ticket_, {.graph = graph_.built->Get(), .patches = patches});
  if (!status.ok()) return FailOfCall(status);
  for (GraphPlan::Patch& patch : plan_->patches) patch.value = ValueOf(patch);
  plan_->fault_set = fault_set_;
  for (size_t n = 0; n < events_.size(); ++n) {
    plan_->records[n].event->NoteLaunch(stream_, ticket_, std::move(events_[n]));
  }
  NoteUse();
  return Outcome::kIssued;
}

FailureId GraphLaunch::Enter() {
  std::vector<MemoryUse>& uses = scratch_.uses;
  uses.clear();
  const auto add = [&](uint32_t number, Use use) { uses.push_back({MemoryOf(number).get(), use}); };
  for (const uint32_t number : plan_->inputs) add(number, Use::kRead);
  for (size_t n = 0; n < slots_.size(); ++n) {
    if (LeavesRest(n)) add(static_cast<uint32_t>(GraphPlan::kFirstSlot + n), Use::kRead);
  }
  std::ranges::copy(scratch_.outputs, std::back_inserter(uses));
  const bool is_foreign = std::ranges::any_of(homes_, [&](const Home& home) { return !IsOwn(home); });
  if (graph_.faults != nullptr) graph_.faults->Watch(stream_, ticket_, fault_set_);
  return parts_.faults.Enter(stream_, {.ticket = ticket_,
                                       .memory = uses,
                                       .host = scratch_.host,
                                       .graph = &graph_.faults,
                                       .may_fail = graph_.faults != nullptr || !parts_.device.needs_polling(),
                                       .is_foreign = is_foreign});
}

Outcome GraphLaunch::Upload() {
  graph_.NoteLaunch(stream_, ticket_);
  const Status status = stream_.backend->UploadGraph(ticket_, *graph_.built->Get());
  if (!status.ok()) return FailOfCall(status);
  NoteUse();
  return Outcome::kIssued;
}

Outcome GraphLaunch::FailOfCall(Status status) {
  if (status.code() == StatusCode::kUpstream) return Fail({.status = {StatusCode::kDeviceLost, status.note()}});
  return parts_.ends.FailDriver(stream_, ticket_, status, 0, Written());
}

void GraphLaunch::NoteUse() {
  for (const Home& home : homes_) {
    if (!IsOwn(home)) home.channel->peers().users.Add(channel_.weak_from_this(), stream_, ticket_);
  }
}

// ── Copies and fills whose memory each launch gives ────────────────────────────────────────────────────────────────

void GraphLaunch::AddPatch(uint32_t param, uint32_t entry, std::optional<uint32_t> slot, uint64_t offset) {
  const auto node = static_cast<uint32_t>(plan_->nodes.size() - 1);
  plan_->patches.push_back({.node = node, .param = param, .entry = entry, .slot = slot, .offset = offset});
}

void GraphLaunch::AddSlotWrite(uint32_t slot, bool is_whole) {
  const uint32_t number = GraphPlan::kFirstSlot + slot;
  if (is_whole) plan_->slots[slot].is_covered |= plan_->IsUnused(number);
  accesses_.writes.push_back({number, is_whole});
}

GraphLaunch::Ended GraphLaunch::AddSlotCopy(Home& home, CopyWork& copy, const GraphDefinition::Copy& defined) {
  if (home.is_gone) return std::nullopt;
  plan_->has_slot_copies = true;
  auto& [bytes, flags, reported, dst, src, memory_uses, memory_count, host_uses, host_count] = copy;
  for (CopyEnd* const end : {&dst, &src}) {
    const bool is_dst = end == &dst;
    const uint32_t entry = is_dst ? defined.dst_entry : defined.src_entry;
    // The owner makes no node of a copy between devices, and none without bytes.
    if (bytes == 0 || (end->IsDevice() && end->device != home.id)) return Malformed();
    if (entry == kNoEntry) {
      if (const Ended ended = FindCopyEnd(copy, *end)) return ended;
      if (end->home == nullptr) return std::nullopt;
      if (end->entry != nullptr && is_dst) AddWrite(home, *end->entry, end->handle, copy.IsWhole());
      if (end->entry != nullptr && !is_dst) AddRead(home, *end->entry, end->handle);
      continue;
    }
    if (!end->IsDevice() || end->offset > UINT64_MAX - bytes) return Malformed();
    end->home = home.channel.get();
    const uint32_t slot = plan_->SlotOf(home.id, entry);
    uint64_t& reach = plan_->slots[slot].reach;
    reach = std::max(reach, end->offset + bytes);
    AddPatch(is_dst ? hal::GraphPatch::kDst : hal::GraphPatch::kSrc, entry, slot, end->offset);
    if (is_dst) {
      AddSlotWrite(slot, end->offset == 0);
    } else {
      accesses_.reads.push_back(GraphPlan::kFirstSlot + slot);
    }
  }
  AddHostUses(copy);
  hal::GraphCopy work{.dst = dst.address, .src = src.address, .bytes = bytes};
  work.host = {.dst = dst.Lease(), .src = src.Lease()};
  Node().work = std::move(work);
  return CheckHostMemory(copy);
}

GraphLaunch::Ended GraphLaunch::AddSlotFill(Home& home, const GraphDefinition::Fill& fill) {
  if (home.is_gone) return std::nullopt;
  plan_->has_slot_copies = true;
  const protocol::FillRecord& record = fill.record;
  const uint32_t slot = plan_->SlotOf(home.id, fill.memory_entry);
  GraphPlan::Slot& filled = plan_->slots[slot];
  filled.element_bytes = record.element_bytes;
  filled.count = fill.count_entry;
  AddSlotWrite(slot, true);
  Node().work = hal::GraphFill{.element_bytes = record.element_bytes, .pattern = record.pattern, .is_patched = true};
  AddPatch(hal::GraphPatch::kDst, fill.memory_entry, slot);
  AddPatch(hal::GraphPatch::kCount, fill.count_entry);
  if (fill.pattern_entry != kNoEntry) AddPatch(hal::GraphPatch::kPattern, fill.pattern_entry);
  return std::nullopt;
}

uint64_t GraphLaunch::ReachOf(const GraphPlan::Slot& slot) const {
  if (slot.element_bytes == 0) return slot.reach;
  const uint64_t count = entries_[slot.count].value;
  if (count > UINT64_MAX / slot.element_bytes) return UINT64_MAX;
  return std::max(slot.reach, count * slot.element_bytes);
}

// ── Fault slots of the nodes ───────────────────────────────────────────────────────────────────────────────────────

bool GraphLaunch::TakeFaultSlots() {
  std::vector<GraphFaults::Node> nodes;
  for (const GraphPlan::Checked& checked : plan_->checked) nodes.push_back({checked.node, checked.kernel});
  for (const auto& copy : plan_->reporting_copies) nodes.push_back({copy.node, 0});
  const bool has_bodies =
      std::ranges::any_of(plan_->checked, [](const auto& each) { return !each.body.empty(); }) ||
      std::ranges::any_of(plan_->reporting_copies, [](const auto& each) { return !each.body.empty(); });
  if (nodes.empty()) return true;
  const size_t count = nodes.size();
  std::optional<GraphFaults::Slots> slots = parts_.faults.TakeForGraph(has_bodies ? count + 1 : count);
  if (!slots) return false;
  protocol::FaultSlot* word = nullptr;
  if (has_bodies) {
    word = slots->back();
    slots->pop_back();
  }
  graph_.faults = std::make_shared<GraphFaults>(std::move(nodes), word);
  auto slot = slots->begin();
  for (const GraphPlan::Checked& checked : plan_->checked) {
    auto& kernel = std::get<hal::GraphKernel>(plan_->NodeAt(checked.node, checked.body).work);
    kernel.params[checked.param] = reinterpret_cast<uintptr_t>(*slot++);
    uint32_t* const own_word = graph_.faults->word();
    kernel.params[checked.param + 1] =
        reinterpret_cast<uintptr_t>(own_word != nullptr ? own_word : parts_.faults.word());
  }
  for (const auto& [node, body] : plan_->reporting_copies) {
    hal::HostLeases& host = std::get<hal::GraphCopy>(plan_->NodeAt(node, body).work).host;
    host.report = *slot++;
    host.fault_word = parts_.faults.word();
  }
  if (has_bodies) StopLoopsAt(graph_.faults->word(), plan_->nodes);
  plan_->fault_set = graph_.faults->AddSet(std::move(*slots));
  return true;
}

/// While the earlier launches have all the sets that a graph may have, the stream waits for the oldest of them. No
/// later record of the stream could begin before that one has completed.
GraphLaunch::Ended GraphLaunch::FindFaultSet() {
  if (graph_.faults == nullptr) return std::nullopt;
  GraphFaults& faults = *graph_.faults;
  const size_t count = faults.nodes().size();
  while (true) {
    FaultReports::RetireGraph(faults);
    if (const std::optional<uint32_t> free = faults.FindFree(graph_.plan->fault_set)) {
      fault_set_ = *free;
      return std::nullopt;
    }
    if (faults.MayGrow()) {
      if (std::optional<GraphFaults::Slots> slots = parts_.faults.TakeForGraph(count)) {
        fault_set_ = faults.AddSet(std::move(*slots));
        return std::nullopt;
      }
    }
    const auto [launching, ticket] = *faults.Oldest();
    if (parts_.waits.WaitsForEnd(stream_, *launching, ticket)) return parts_.waits.Park(stream_, ParkReason::kWindow);
  }
}

void GraphLaunch::AddFaultPatches(std::vector<hal::GraphPatch>& patches) {
  // With nodes in bodies there is one set.
  if (graph_.faults == nullptr || plan_->fault_set == fault_set_) return;
  auto slot = graph_.faults->SlotsOf(fault_set_).begin();
  for (const auto& [node, param, kernel, body] : plan_->checked) {
    patches.push_back({node, param, reinterpret_cast<uintptr_t>(*slot++)});
  }
  for (const auto& [copy, body] : plan_->reporting_copies) {
    patches.push_back({copy, hal::GraphPatch::kReport, reinterpret_cast<uintptr_t>(*slot++)});
  }
}

}  // namespace millrace
