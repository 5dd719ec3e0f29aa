#include "runtime/issue/malformed_record.h"

#include <memory>
#include <utility>
#include <variant>

#include "runtime/channel.h"
#include "runtime/issue/record_ends.h"
#include "runtime/launches.h"
#include "runtime/registry.h"

namespace millrace {

using protocol::ArgKind;
using protocol::MemorySpace;
using protocol::Opcode;

namespace {

/// The entries that the record has, at most `count`.
std::vector<protocol::LaunchArg> ArgsOf(RecordReader& reader, uint32_t count) {
  std::vector<protocol::LaunchArg> args;
  protocol::LaunchArg arg;
  for (; count > 0 && reader.Read(arg); --count) args.push_back(arg);
  return args;
}

}  // namespace

Outcome MalformedRecord::Fail() {
  AddWritten(parts_.device.id(), record_);
  const Failure failure{.status = Status(StatusCode::kInternal, "malformed record")};
  BindMade(parts_.ends.RecordFailure(stream_, ticket_, failure, {.memory = memory_, .host = host_}));
  return parts_.ends.CloseTicket(stream_, ticket_);
}

void MalformedRecord::AddWritten(uint32_t device, const Record& record) {
  RecordReader reader(record);
  const auto add = [&](auto fields, auto list) {
    if (reader.ReadFields(fields)) list(fields);
  };
  switch (record.opcode()) {
    case Opcode::kFill:
      return add(protocol::FillRecord{}, [&](const auto& fill) { AddMemory(device, fill.handle); });
    case Opcode::kFillStrided:
      return add(protocol::FillStridedRecord{}, [&](const auto& fill) { AddMemory(device, fill.handle); });
    case Opcode::kCopy:
      return add(protocol::CopyRecord{}, [&](const auto& copy) { AddCopy(copy); });
    case Opcode::kCopyStrided:
      return add(protocol::CopyStridedRecord{}, [&](const auto& copy) { AddMemory(device, copy.dst_handle); });
    case Opcode::kCopyArray:
      return add(protocol::CopyArrayRecord{},
                 [&](const auto& copy) { AddMemory(device, copy.is_upload != 0 ? copy.array : copy.memory); });
    case Opcode::kCopyBatch:
      return add(protocol::CopyBatchRecord{}, [&](const auto& batch) {
        protocol::BatchedCopy copy;
        for (uint32_t left = batch.count; left > 0 && reader.Read(copy); --left) AddCopy(copy);
      });
    case Opcode::kLaunch:
      return add(protocol::LaunchRecord{},
                 [&](const auto& launch) { AddLaunch(device, ArgsOf(reader, launch.arg_count)); });
    case Opcode::kExternal:
      return add(protocol::ExternalRecord{},
                 [&](const auto& external) { AddLaunch(device, ArgsOf(reader, external.arg_count)); });
    case Opcode::kLaunchGraph:
      return add(protocol::LaunchGraphRecord{},
                 [&](const auto& launch) { AddGraph(launch.graph, ArgsOf(reader, launch.arg_count)); });
    default:
      return;
  }
}

void MalformedRecord::AddLaunch(uint32_t device, std::span<const protocol::LaunchArg> args) {
  const protocol::LaunchArg* where = nullptr;
  for (const protocol::LaunchArg& arg : args) {
    const auto kind = static_cast<ArgKind>(arg.kind);
    const protocol::LaunchArg* const elsewhere = std::exchange(where, kind == ArgKind::kElsewhere ? &arg : nullptr);
    const bool names_memory = kind == ArgKind::kMemory || kind == ArgKind::kMember || kind == ArgKind::kVariable;
    if (!names_memory || !Writes(arg.access)) continue;
    if (elsewhere == nullptr) {
      AddMemory(device, arg.handle);
    } else if (elsewhere->size == static_cast<uint16_t>(MemorySpace::kDevice)) {
      AddMemory(elsewhere->handle, arg.handle);
    } else {
      AddHost(elsewhere->handle, arg.handle, arg.value, elsewhere->value, false);
    }
  }
}

template <typename Copy>
void MalformedRecord::AddCopy(const Copy& copy) {
  if (copy.dst_space == static_cast<uint16_t>(MemorySpace::kDevice)) return AddMemory(copy.dst_device, copy.dst_handle);
  const auto is = [&](protocol::CopyFlag flag) { return (copy.flags & static_cast<uint32_t>(flag)) != 0; };
  const bool is_staged = is(protocol::CopyFlag::kStaged);
  if (is_staged || is(protocol::CopyFlag::kPinned))
    AddHost(copy.dst_device, copy.dst_handle, copy.dst_offset, copy.bytes, is_staged);
}

void MalformedRecord::AddGraph(uint32_t handle, std::span<const protocol::LaunchArg> entries) {
  AddLaunch(parts_.device.id(), entries);
  const auto& graphs = parts_.tables.graphs.by_handle;
  const auto found = graphs.find(handle);
  if (found != graphs.end() && found->second->Read()) AddNodes(found->second->definition->nodes);
}

void MalformedRecord::AddNodes(const std::vector<GraphDefinition::Node>& nodes) {
  for (const GraphDefinition::Node& node : nodes) {
    const uint32_t device = node.device;
    if (const auto* launch = std::get_if<GraphDefinition::Launch>(&node.work)) {
      AddLaunch(device, launch->args);
    } else if (const auto* copy = std::get_if<GraphDefinition::Copy>(&node.work)) {
      AddCopy(copy->record);
    } else if (const auto* strided = std::get_if<GraphDefinition::CopyStrided>(&node.work)) {
      AddMemory(device, strided->record.dst_handle);
    } else if (const auto* fill = std::get_if<GraphDefinition::Fill>(&node.work)) {
      AddMemory(device, fill->record.handle);
    } else if (const auto* filled = std::get_if<GraphDefinition::FillStrided>(&node.work)) {
      AddMemory(device, filled->record.handle);
    } else if (const auto* condition = std::get_if<GraphDefinition::Condition>(&node.work)) {
      for (const auto& body : condition->bodies) AddNodes(body);
    }
  }
}

void MalformedRecord::AddMemory(uint32_t device, uint32_t handle) {
  std::optional<MemoryRef> found;
  if (device == parts_.device.id()) {
    if (const MemoryRef* const own = parts_.tables.memory.Find(handle)) found = *own;
  } else if (const std::shared_ptr<Channel> other = Registry::Instance().Find(device)) {
    found = other->tables().memory.Look(handle);
  }
  if (!found) return;
  memory_.push_back({found->get(), Use::kWrite});
  held_.push_back(std::move(*found));
}

void MalformedRecord::AddHost(uint32_t device, uint32_t handle, uint64_t offset, uint64_t bytes, bool is_staged) {
  const std::shared_ptr<Channel> home = Registry::Instance().Find(device);
  const std::optional<HostEntry> found = home == nullptr ? std::nullopt : home->tables().host.Look(handle);
  if (!found || found->state == nullptr || !Fits(offset, bytes, found->bytes.size())) return;
  host_.push_back({{found->state, offset, bytes, is_staged}, true});
}

void MalformedRecord::BindPoisoned(uint32_t handle, uint64_t bytes, FailureId failure) {
  if (!parts_.tables.memory.IsFree(handle)) return;
  parts_.tables.owned.AddMemory(stream_.owner_id, handle);
  parts_.tables.BindPoisoned(handle, bytes, failure);
}

void MalformedRecord::BindMade(FailureId failure) {
  RecordReader reader(record_);
  const auto bind = [&](auto fields, uint64_t (*bytes_of)(const decltype(fields)&)) {
    if (reader.ReadFields(fields)) BindPoisoned(fields.handle, bytes_of(fields), failure);
  };
  switch (record_.opcode()) {
    case Opcode::kAlloc:
      return bind(protocol::AllocRecord{}, [](const protocol::AllocRecord& made) { return made.bytes; });
    case Opcode::kAllocArray:
      return bind(protocol::AllocArrayRecord{}, [](const protocol::AllocArrayRecord& made) { return made.bytes; });
    case Opcode::kCreateTexture:
      return bind(protocol::CreateTextureRecord{}, [](const protocol::CreateTextureRecord&) -> uint64_t { return 0; });
    default:
      return;
  }
}

}  // namespace millrace
