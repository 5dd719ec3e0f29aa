// Plans a graph at its first launch: finds the memory and the kernels that the definition names, and makes the
// backend's list of nodes. If memory or a kernel does not exist yet, the stream parks, as for an ordinary record, and
// plans again from the start when it continues.

#include <algorithm>
#include <utility>

#include "runtime/channel.h"
#include "runtime/issue/copy_records.h"
#include "runtime/issue/graph_launch.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/launches.h"
#include "runtime/strided.h"

namespace millrace {

using protocol::ArgKind;
using protocol::PeerRoute;

GraphLaunch::Ended GraphLaunch::MakePlan() {
  made_ = std::make_unique<GraphPlan>();
  plan_ = made_.get();
  return AddPart(graph_.definition->nodes, plan_->nodes);
}

GraphLaunch::Ended GraphLaunch::AddPart(const std::vector<GraphDefinition::Node>& nodes,
                                        std::vector<hal::GraphNode>& part) {
  std::vector<hal::GraphNode>* const outer = std::exchange(part_, &part);
  for (const GraphDefinition::Node& node : nodes) {
    Home& home = HomeOf(node.device);
    part.push_back({.device = home.is_gone ? nullptr : home.channel->access().IfOpen(),
                    .partition = node.partition,
                    .after = node.after});
    if (home.is_gone && !gone_) gone_ = home.id;
    accesses_ = {};
    const Ended ended = std::visit([&](const auto& work) { return Add(home, work); }, node.work);
    if (ended) return ended;
    plan_->AddAccesses(accesses_.reads, accesses_.writes);
  }
  part_ = outer;
  return std::nullopt;
}

GraphPlan::Place GraphLaunch::PlaceOfNode() const {
  if (bodies_.empty()) return {};
  GraphPlan::Place place = bodies_;
  place.push_back(static_cast<uint32_t>(part_->size() - 1));
  return place;
}

uint32_t GraphLaunch::NumberOf(Home& home, const MemoryRef& entry, uint32_t handle) {
  return plan_->NumberOf(entry, handle, IsOwn(home));
}

void GraphLaunch::AddRead(Home& home, const MemoryRef& entry, uint32_t handle) {
  accesses_.reads.push_back(NumberOf(home, entry, handle));
}

void GraphLaunch::AddWrite(Home& home, const MemoryRef& entry, uint32_t handle, bool is_whole) {
  const uint32_t number = NumberOf(home, entry, handle);
  accesses_.writes.push_back({number, is_whole});
  // A failed allocation fails what writes it, too.
  if (entry->address == nullptr) accesses_.reads.push_back(number);
}

GraphLaunch::Ended GraphLaunch::FindMemory(Home& home, uint32_t handle, MemoryRef& found) {
  if (home.is_gone) return std::nullopt;
  if (IsOwn(home)) {
    if (parts_.waits.WaitsForMemory(stream_, handle)) return parts_.waits.Park(stream_, ParkReason::kPoint);
    const MemoryRef* const entry = parts_.tables.memory.Find(handle);
    if (entry == nullptr) return Malformed();
    found = *entry;
    return std::nullopt;
  }
  auto seen = home.channel->tables().memory.Look(handle, channel_.shared_from_this(), stream_.index());
  if (seen.comes_later) return parts_.waits.ParkFor(stream_, *home.channel, ParkReason::kPoint);
  if (!seen.object) return Malformed();
  found = std::move(*seen.object);
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::Add(Home&, const protocol::NopRecord&) {
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::Add(Home& home, const protocol::RecordEventRecord& record) {
  // The tables of other devices' events are for their own channels, and launches replace no event in a body.
  if (!IsOwn(home) || !bodies_.empty()) return Malformed();
  EventRef* const found = parts_.tables.events.Find(record.handle);
  if (found != nullptr && !(*found)->is_of_graph) return Malformed();
  EventRef event = found != nullptr ? *found : parts_.tables.BindGraphEvent(record.handle);
  if (found == nullptr) parts_.tables.owned.AddEvent(stream_.owner_id, record.handle);
  plan_->records.push_back({static_cast<uint32_t>(plan_->nodes.size() - 1), std::move(event)});
  Node().work = hal::GraphRecord{};
  return std::nullopt;
}

// ── Launches ───────────────────────────────────────────────────────────────────────────────────────────────────────

GraphLaunch::Ended GraphLaunch::FindKernel(Home& home, const protocol::LaunchRecord& record, hal::GraphKernel& kernel) {
  if (home.is_gone) return std::nullopt;
  auto& table = home.channel->tables().kernels;
  GraphPlan::Kernel planned{.node = NodeIndex(), .record = record};
  if (IsOwn(home)) {
    if (table.WaitsFor(record.kernel, channel_.shared_from_this(), stream_.index()))
      return parts_.waits.Park(stream_, ParkReason::kBuild);
    const KernelEntry* const found = table.Find(record.kernel);
    if (found == nullptr) return Malformed();
    planned.entry = *found;
  } else {
    auto seen = table.Look(record.kernel, channel_.shared_from_this(), stream_.index());
    if (seen.comes_later) return parts_.waits.ParkFor(stream_, *home.channel, ParkReason::kBuild);
    if (!seen.object) return Malformed();
    planned.entry = std::move(*seen.object);
  }
  kernel.kernel = planned.entry.kernel;
  plan_->kernels.push_back(std::move(planned));
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::Launch& launch) {
  const protocol::LaunchRecord& record = launch.record;
  hal::GraphKernel kernel{.grid = {record.grid_x, record.grid_y, record.grid_z},
                          .block = {record.block_x, record.block_y, record.block_z},
                          .shared_bytes = record.shared_bytes,
                          .is_cooperative = IsCooperative(record),
                          .kernel_id = record.kernel};
  if (const Ended ended = FindKernel(home, record, kernel)) return ended;
  const uint32_t node = NodeIndex();
  uint32_t param_count = 0;
  uint32_t latest = 0;  // The first word of the latest parameter by value.
  for (size_t n = 0; n < launch.args.size(); ++n) {
    const protocol::LaunchArg& arg = launch.args[n];
    const auto kind = static_cast<ArgKind>(arg.kind);
    const bool is_member = kind == ArgKind::kMember;
    if (kind == ArgKind::kElsewhere) continue;
    const bool is_elsewhere = n > 0 && launch.args[n - 1].kind == static_cast<uint8_t>(ArgKind::kElsewhere);
    if (!is_member && kind != ArgKind::kVariable) ++param_count;
    if (kind == ArgKind::kBytes) {
      const auto from = launch.bytes.begin() + static_cast<ptrdiff_t>(arg.value / sizeof(uint64_t));
      latest = static_cast<uint32_t>(kernel.params.size());
      kernel.wide.push_back({param_count - 1, arg.size});
      kernel.params.insert(kernel.params.end(), from,
                           from + static_cast<ptrdiff_t>((arg.size + sizeof(uint64_t) - 1) / sizeof(uint64_t)));
      continue;
    }
    const auto param = is_member ? latest + static_cast<uint32_t>(arg.size / sizeof(uint64_t))
                                 : static_cast<uint32_t>(kernel.params.size());
    if (!is_member && kind != ArgKind::kVariable) kernel.params.push_back(0);
    const uint32_t entry = launch.entries[n];
    const bool is_replaced = entry != GraphDefinition::kNoEntry;
    if (kind == ArgKind::kScalar) {
      if (is_replaced) plan_->patches.push_back({.node = node, .param = param, .entry = entry});
      kernel.params[param] = arg.value;
    } else if (is_replaced) {
      const uint32_t slot = plan_->SlotOf(home.id, entry);
      plan_->patches.push_back({.node = node, .param = param, .entry = entry, .slot = slot});
      if (Reads(arg.access)) accesses_.reads.push_back(GraphPlan::kFirstSlot + slot);
      if (Writes(arg.access)) {
        accesses_.writes.push_back({GraphPlan::kFirstSlot + slot, !IsPart(arg.access)});
      }
    } else if (is_elsewhere) {
      if (const Ended ended = FindElsewhere(launch.args[n - 1], arg, kernel, kernel.params[param])) return ended;
    } else {
      MemoryRef memory;
      if (const Ended ended = FindMemory(home, arg.handle, memory)) return ended;
      if (memory == nullptr) continue;  // The device is gone.
      if (arg.value > memory->bytes) return Malformed();
      if (kind == ArgKind::kVariable && memory->address == nullptr) continue;
      if (Reads(arg.access) || memory->address == nullptr) AddRead(home, memory, arg.handle);
      if (Writes(arg.access)) AddWrite(home, memory, arg.handle, !IsPart(arg.access));
      if (kind == ArgKind::kVariable) continue;
      kernel.params[param] = arg.value + reinterpret_cast<uintptr_t>(memory->address);
    }
  }
  if (!home.is_gone && plan_->kernels.back().entry.is_checked) {
    plan_->checked.push_back({node, static_cast<uint32_t>(kernel.params.size()), record.kernel, PlaceOfNode()});
    kernel.params.resize(kernel.params.size() + 2);
  }
  Node().work = std::move(kernel);
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::FindElsewhere(const protocol::LaunchArg& where, const protocol::LaunchArg& arg,
                                              hal::GraphKernel& kernel, uint64_t& param) {
  CopyWork part{.bytes = where.value, .flags = static_cast<uint32_t>(protocol::CopyFlag::kPinned)};
  // As an end of a copy.
  CopyEnd& end = Writes(arg.access) ? part.dst : part.src;
  end = {.device = where.handle, .space = where.size, .handle = arg.handle, .offset = arg.value};
  if (const Ended ended = FindCopyEnd(part, end)) return ended;
  if (end.home == nullptr) return std::nullopt;  // The device is gone.
  param = reinterpret_cast<uintptr_t>(end.address);
  if (end.entry != nullptr) {
    Home& owner = HomeOf(where.handle);
    if (IsOwn(owner)) return Malformed();
    // Only its pool can be kept open for a graph.
    if ((*end.entry)->kind == protocol::AllocKind::kInterprocess) return Malformed();
    if (Reads(arg.access) || end.address == nullptr) AddRead(owner, *end.entry, arg.handle);
    if (Writes(arg.access)) AddWrite(owner, *end.entry, arg.handle, !IsPart(arg.access));
    hal::Device* const device = end.home->access().IfOpen();
    if (std::ranges::find(kernel.peers, device) == kernel.peers.end()) kernel.peers.push_back(device);
    return std::nullopt;
  }
  if (parts_.device.needs_locked_memory() && !end.host.is_page_locked) plan_->unlocked_copy = NodeIndex();
  if (Reads(arg.access)) AddHostUse({end.range, false, reported_});
  if (Writes(arg.access)) AddHostUse({end.range, true, reported_});
  return std::nullopt;
}

// ── Copies ─────────────────────────────────────────────────────────────────────────────────────────────────────────

GraphLaunch::Ended GraphLaunch::FindCopyEnd(CopyWork& copy, CopyEnd& end) {
  Home& home = HomeOf(end.device);
  end.home = home.is_gone ? nullptr : home.channel.get();
  if (home.is_gone && !gone_) gone_ = home.id;
  const CopyRecords::Sight sight = parts_.copies.FindEnd(stream_, end, copy);
  if (sight == CopyRecords::Sight::kMalformed) return Malformed();
  if (sight == CopyRecords::Sight::kFound) return std::nullopt;
  // The thread that submitted it left before it registered the memory.
  if (stream_.has_owner_left && !end.IsDevice() && IsOwn(home)) {
    if (!gone_) gone_ = 0;
    end.home = nullptr;
    return std::nullopt;
  }
  return parts_.waits.ParkFor(stream_, *end.home, end.IsDevice() ? ParkReason::kPoint : ParkReason::kPin);
}

void GraphLaunch::AddHostUse(const HostUse& use) {
  // What an earlier node has written is not read from outside of the graph.
  const bool is_inside = std::ranges::any_of(
      plan_->host, [&](const HostUse& earlier) { return earlier.is_write && earlier.range.Overlaps(use.range); });
  if (use.is_write || !is_inside) plan_->host.push_back(use);
}

void GraphLaunch::AddHostUses(const CopyWork& copy) {
  for (const HostUse& use : copy.Host()) AddHostUse(use);
}

GraphLaunch::Ended GraphLaunch::CheckHostMemory(const CopyWork& copy) {
  for (const CopyEnd* const end : {&copy.dst, &copy.src}) {
    if (end->IsDevice()) continue;
    // Nodes of a graph cannot use the blocking-calls thread.
    if (parts_.device.needs_locked_memory() && !end->host.is_page_locked) plan_->unlocked_copy = NodeIndex();
    // The other device's owner may end while this device continues.
    if (end->home != &channel_) plan_->reporting_copies.push_back({NodeIndex(), PlaceOfNode()});
  }
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::Copy& defined) {
  const protocol::CopyRecord& record = defined.record;
  CopyWork copy{.bytes = record.bytes, .flags = record.flags};
  copy.dst = {
      .device = record.dst_device, .space = record.dst_space, .handle = record.dst_handle, .offset = record.dst_offset};
  copy.src = {
      .device = record.src_device, .space = record.src_space, .handle = record.src_handle, .offset = record.src_offset};
  if (defined.dst_entry != GraphDefinition::kNoEntry || defined.src_entry != GraphDefinition::kNoEntry) {
    return AddSlotCopy(home, copy, defined);
  }
  for (CopyEnd* const end : {&copy.dst, &copy.src}) {
    if (const Ended ended = FindCopyEnd(copy, *end)) return ended;
  }
  auto& [bytes, flags, reported, dst, src, memory_uses, memory_count, host_uses, host_count] = copy;
  if (src.entry != nullptr) AddRead(HomeOf(src.device), *src.entry, src.handle);
  if (dst.entry != nullptr) AddWrite(HomeOf(dst.device), *dst.entry, dst.handle, copy.IsWhole());
  AddHostUses(copy);
  if (dst.home == nullptr || src.home == nullptr || bytes == 0) return std::nullopt;
  if (dst.entry != nullptr && src.entry != nullptr && dst.home != src.home) {
    const auto route = dst.home->peers().routes.Find(src.home->id(), channel_.shared_from_this(), stream_.index());
    if (!route) return parts_.waits.ParkFor(stream_, *dst.home, ParkReason::kPeer);
    Node().work = hal::GraphPeerCopy{{.dst = dst.address,
                                      .dst_device = dst.home->access().IfOpen(),
                                      .src = src.address,
                                      .src_device = src.home->access().IfOpen(),
                                      .bytes = bytes,
                                      .route = *route}};
    return std::nullopt;
  }
  const CopyEnd* const on_device = dst.entry != nullptr ? &dst : src.entry != nullptr ? &src : nullptr;
  if (on_device != nullptr) Node().device = on_device->home->access().IfOpen();
  hal::GraphCopy work{.dst = dst.address, .src = src.address, .bytes = bytes};
  work.host = {.dst = dst.Lease(), .src = src.Lease()};
  Node().work = std::move(work);
  return CheckHostMemory(copy);
}

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::CopyStrided& copy) {
  const auto& [record, axes] = copy;
  MemoryRef dst;
  MemoryRef src;
  if (const Ended ended = FindMemory(home, record.dst_handle, dst)) return ended;
  if (const Ended ended = FindMemory(home, record.src_handle, src)) return ended;
  if (dst == nullptr || src == nullptr) return std::nullopt;  // The device is gone.
  const uint32_t size = record.element_bytes;
  if (record.dst_offset % size != 0 || record.src_offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.dst_offset, dst->bytes) ||
      !StridesFit(axes, &hal::StridedAxis::src_stride, size, record.src_offset, src->bytes)) {
    return Malformed();
  }
  AddRead(home, src, record.src_handle);
  AddWrite(home, dst, record.dst_handle, CoversAll(axes, size, dst->bytes));
  if (dst->address == nullptr || src->address == nullptr) return std::nullopt;
  Node().work = hal::GraphStrided{.dst = dst->address + record.dst_offset,
                                  .src = src->address + record.src_offset,
                                  .element_bytes = size,
                                  .axes = {axes.span().begin(), axes.span().end()}};
  return std::nullopt;
}

// ── Fills ──────────────────────────────────────────────────────────────────────────────────────────────────────────

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::Fill& fill) {
  const protocol::FillRecord& record = fill.record;
  if (fill.memory_entry != GraphDefinition::kNoEntry) return AddSlotFill(home, fill);
  MemoryRef entry;
  if (const Ended ended = FindMemory(home, record.handle, entry)) return ended;
  if (entry == nullptr) return std::nullopt;  // The device is gone.
  const uint64_t bytes = record.count * record.element_bytes;
  if (!Fits(record.offset, bytes, entry->bytes)) return Malformed();
  AddWrite(home, entry, record.handle, record.offset == 0 && bytes == entry->bytes);
  if (bytes == 0 || entry->address == nullptr) return std::nullopt;
  Node().work = hal::GraphFill{.dst = entry->address + record.offset,
                               .element_bytes = record.element_bytes,
                               .pattern = record.pattern,
                               .count = record.count,
                               .is_patched = fill.pattern_entry != GraphDefinition::kNoEntry};
  if (fill.pattern_entry != GraphDefinition::kNoEntry) AddPatch(hal::GraphPatch::kPattern, fill.pattern_entry);
  return std::nullopt;
}

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::FillStrided& fill) {
  const auto& [record, axes] = fill;
  MemoryRef entry;
  if (const Ended ended = FindMemory(home, record.handle, entry)) return ended;
  if (entry == nullptr) return std::nullopt;  // The device is gone.
  const uint32_t size = record.element_bytes;
  if (record.offset % size != 0 ||
      !StridesFit(axes, &hal::StridedAxis::dst_stride, size, record.offset, entry->bytes)) {
    return Malformed();
  }
  AddWrite(home, entry, record.handle, CoversAll(axes, size, entry->bytes));
  if (entry->address == nullptr) return std::nullopt;
  Node().work = hal::GraphStrided{.dst = entry->address + record.offset,
                                  .element_bytes = size,
                                  .pattern = record.pattern,
                                  .axes = {axes.span().begin(), axes.span().end()}};
  return std::nullopt;
}

// ── Conditions ─────────────────────────────────────────────────────────────────────────────────────────────────────

GraphLaunch::Ended GraphLaunch::Add(Home& home, const GraphDefinition::Condition& condition) {
  using Kind = hal::GraphCondition::Kind;
  const protocol::GraphCondition& head = condition.head;
  MemoryRef value;
  if (const Ended ended = FindMemory(home, head.handle, value)) return ended;
  if (value != nullptr && !Fits(head.offset, sizeof(int32_t), value->bytes)) return Malformed();
  hal::GraphCondition work{.kind = static_cast<Kind>(head.kind)};
  if (value != nullptr) {
    AddRead(home, value, head.handle);
    plan_->AddAccesses(accesses_.reads, {});
    if (value->address != nullptr) work.value = reinterpret_cast<const int32_t*>(value->address + head.offset);
  }
  work.bodies.resize(condition.bodies.size());
  Node().work = std::move(work);
  // It stays where it is until the bodies are planned: its own part does not grow meanwhile.
  std::vector<std::vector<hal::GraphNode>>& bodies = std::get<hal::GraphCondition>(Node().work).bodies;
  bodies_.push_back(static_cast<uint32_t>(part_->size() - 1));
  for (size_t n = 0; n < bodies.size(); ++n) {
    bodies_.push_back(static_cast<uint32_t>(n));
    plan_->BeginBody();
    if (const Ended ended = AddPart(condition.bodies[n], bodies[n])) return ended;
    plan_->EndBody();
    bodies_.pop_back();
  }
  bodies_.pop_back();
  accesses_ = {};
  return std::nullopt;
}

}  // namespace millrace
