#include "runtime/graph_definition.h"

#include <algorithm>
#include <utility>

#include "runtime/handle_table.h"
#include "runtime/launches.h"
#include "runtime/record_reader.h"

namespace millrace {
namespace {

using protocol::ArgKind;
using protocol::Opcode;
using DefinedNode = GraphDefinition::Node;

/// As many as a LAUNCH_GRAPH record has room for.
constexpr uint32_t kMostEntries =
    (protocol::kMaxRecordBytes - sizeof(protocol::LaunchGraphRecord)) / sizeof(protocol::LaunchArg);

bool ReadNode(RecordReader& reader, DefinedNode& node, protocol::NopRecord record) {
  node.work = record;
  return reader.ReadFields(record);
}

bool AreParams(std::span<const protocol::LaunchArg> args, size_t byte_count) {
  hal::WideParam latest;
  bool is_elsewhere = false;
  for (const protocol::LaunchArg& arg : args) {
    const auto kind = static_cast<ArgKind>(arg.kind);
    if (std::exchange(is_elsewhere, kind == ArgKind::kElsewhere) && kind != ArgKind::kMemory &&
        kind != ArgKind::kMember) {
      return false;
    }
    switch (kind) {
      case ArgKind::kScalar:
      case ArgKind::kMemory:
      case ArgKind::kVariable:
      case ArgKind::kElsewhere:
        break;
      case ArgKind::kBytes:
        if (!IsWideParam(arg, byte_count)) return false;
        latest.bytes = arg.size;
        break;
      case ArgKind::kMember:
        if (!IsMemberOf(arg, latest)) return false;
        break;
      default:
        return false;
    }
  }
  return !is_elsewhere;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, GraphDefinition::Launch launch) {
  protocol::LaunchRecord& record = launch.record;
  if (!reader.ReadFields(record) || record.arg_count > protocol::kMaxLaunchEntries) return false;
  for (const uint32_t extent :
       {record.grid_x, record.grid_y, record.grid_z, record.block_x, record.block_y, record.block_z}) {
    if (extent == 0) return false;
  }
  launch.args.resize(record.arg_count);
  launch.entries.resize(record.arg_count, GraphDefinition::kNoEntry);
  for (protocol::LaunchArg& arg : launch.args) {
    if (!reader.Read(arg)) return false;
  }
  const std::span<const std::byte> bytes = reader.Behind(0);
  if (!AreParams(launch.args, bytes.size())) return false;
  launch.bytes = WordsOf(bytes);
  node.work = std::move(launch);
  return true;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, GraphDefinition::Copy copy) {
  const protocol::CopyRecord& record = copy.record;
  if (!reader.ReadFields(copy.record)) return false;
  node.work = copy;
  // Staging memory is for copies that are issued at once.
  return (record.flags & static_cast<uint32_t>(protocol::CopyFlag::kStaged)) == 0;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, GraphDefinition::Fill fill) {
  const protocol::FillRecord& record = fill.record;
  if (!reader.ReadFields(fill.record)) return false;
  node.work = fill;
  const uint32_t size = record.element_bytes;
  return IsElementSize(size) && record.count <= UINT64_MAX / size && record.offset % size == 0;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, protocol::RecordEventRecord record) {
  if (!reader.ReadFields(record)) return false;
  node.work = record;
  return record.kind == static_cast<uint32_t>(protocol::EventKind::kTiming) && HandleGeneration(record.handle) != 0;
}

template <typename Work>
bool ReadStridedNode(RecordReader& reader, DefinedNode& node, Work work) {
  auto& record = work.record;
  if (!reader.ReadFields(record) || !IsElementSize(record.element_bytes) ||
      !ReadAxes(reader, record.rank, record.element_bytes, work.axes)) {
    return false;
  }
  node.work = work;
  return true;
}

bool ReadWork(std::span<const std::byte> bytes, DefinedNode& node) {
  Record record;
  if (!ByteReader(bytes).Read(record.header) || record.header.size != bytes.size() ||
      record.header.size > protocol::kMaxRecordBytes) {
    return false;
  }
  record.bytes = bytes;
  RecordReader reader(record);
  switch (record.opcode()) {
    case Opcode::kNop:
      return ReadNode(reader, node, protocol::NopRecord{});
    case Opcode::kLaunch:
      return ReadNode(reader, node, GraphDefinition::Launch{});
    case Opcode::kCopy:
      return ReadNode(reader, node, GraphDefinition::Copy{});
    case Opcode::kFill:
      return ReadNode(reader, node, GraphDefinition::Fill{});
    case Opcode::kCopyStrided:
      return ReadStridedNode(reader, node, GraphDefinition::CopyStrided{});
    case Opcode::kFillStrided:
      return ReadStridedNode(reader, node, GraphDefinition::FillStrided{});
    case Opcode::kRecordEvent:
      return ReadNode(reader, node, protocol::RecordEventRecord{});
    default:
      return false;
  }
}

bool ReadNodes(ByteReader& reader, uint32_t count, uint32_t depth, std::vector<DefinedNode>& nodes);

bool HasBodies(const protocol::GraphCondition& head) {
  switch (static_cast<protocol::ConditionKind>(head.kind)) {
    case protocol::ConditionKind::kIf:
      return head.body_count == 1 || head.body_count == 2;
    case protocol::ConditionKind::kWhile:
      return head.body_count == 1;
    case protocol::ConditionKind::kSwitch:
      return head.body_count > 0;
    default:
      return false;
  }
}

bool ReadCondition(ByteReader& reader, uint32_t depth, DefinedNode& node) {
  GraphDefinition::Condition condition;
  if (depth == protocol::kMaxConditionDepth || !reader.Read(condition.head) || !HasBodies(condition.head)) return false;
  if (condition.head.offset % sizeof(int32_t) != 0) return false;
  for (uint32_t n = 0; n < condition.head.body_count; ++n) {
    protocol::GraphBody body;
    std::vector<DefinedNode>& nodes = condition.bodies.emplace_back();
    if (!reader.Read(body) || !ReadNodes(reader, body.node_count, depth + 1, nodes)) return false;
    for (const DefinedNode& inner : nodes) {
      if (inner.device != node.device) return false;
    }
  }
  node.work = std::move(condition);
  return true;
}

bool ReadHead(ByteReader& reader, uint32_t number, uint32_t depth, DefinedNode& node) {
  protocol::GraphNodeHead head;
  if (!reader.Read(head) || head.after_count > number || head.record_bytes % 8 != 0) return false;
  node.device = head.device;
  node.partition = head.partition;
  for (uint32_t n = 0; n < head.after_count; ++n) {
    uint32_t earlier = 0;
    if (!reader.Read(earlier) || earlier >= number) return false;
    node.after.push_back(earlier);
  }
  uint32_t padding = 0;
  if (head.after_count % 2 != 0 && !reader.Read(padding)) return false;
  if (head.record_bytes == 0) return ReadCondition(reader, depth, node);
  const std::optional<std::span<const std::byte>> record = reader.Take(head.record_bytes);
  return record && ReadWork(*record, node);
}

// Nothing is reserved by the count, which may be wrong.
bool ReadNodes(ByteReader& reader, uint32_t count, uint32_t depth, std::vector<DefinedNode>& nodes) {
  for (uint32_t n = 0; n < count; ++n) {
    if (!ReadHead(reader, n, depth, nodes.emplace_back())) return false;
  }
  return true;
}

/// Where the entry of an argument is kept; null if none can replace it.
uint32_t* EntryOf(DefinedNode& node, uint32_t arg) {
  if (auto* const launch = std::get_if<GraphDefinition::Launch>(&node.work)) {
    if (arg >= launch->args.size()) return nullptr;
    // A variable is no parameter of the kernel, and no entry has a struct or memory elsewhere.
    const auto kind = static_cast<ArgKind>(launch->args[arg].kind);
    const bool is_elsewhere = arg > 0 && launch->args[arg - 1].kind == static_cast<uint8_t>(ArgKind::kElsewhere);
    const bool is_fixed = kind == ArgKind::kVariable || kind == ArgKind::kBytes || kind == ArgKind::kElsewhere;
    return is_fixed || is_elsewhere ? nullptr : &launch->entries[arg];
  }
  if (auto* const copy = std::get_if<GraphDefinition::Copy>(&node.work)) {
    return arg == 0 ? &copy->dst_entry : arg == 1 ? &copy->src_entry : nullptr;
  }
  auto* const fill = std::get_if<GraphDefinition::Fill>(&node.work);
  if (fill == nullptr || arg > 2) return nullptr;
  return arg == 0 ? &fill->memory_entry : arg == 1 ? &fill->pattern_entry : &fill->count_entry;
}

bool ReadPatch(ByteReader& reader, GraphDefinition& definition) {
  protocol::GraphPatch patch;
  if (!reader.Read(patch) || patch.node >= definition.nodes.size() || patch.entry >= definition.entry_count) {
    return false;
  }
  uint32_t* const entry = EntryOf(definition.nodes[patch.node], patch.arg);
  return entry != nullptr && std::exchange(*entry, patch.entry) == GraphDefinition::kNoEntry;
}

/// A launch that gives the memory of a fill gives the count, too.
bool AreFillsWhole(const GraphDefinition& definition) {
  return std::all_of(definition.nodes.begin(), definition.nodes.end(), [](const DefinedNode& node) {
    const auto* const fill = std::get_if<GraphDefinition::Fill>(&node.work);
    if (fill == nullptr) return true;
    const bool has_memory = fill->memory_entry != GraphDefinition::kNoEntry;
    return has_memory == (fill->count_entry != GraphDefinition::kNoEntry) && !(has_memory && fill->record.offset != 0);
  });
}

void AddDevices(const std::vector<DefinedNode>& nodes, std::vector<uint32_t>& devices) {
  for (const DefinedNode& node : nodes) {
    devices.push_back(node.device);
    if (const auto* copy = std::get_if<GraphDefinition::Copy>(&node.work)) {
      devices.push_back(copy->record.dst_device);
      devices.push_back(copy->record.src_device);
    } else if (const auto* launch = std::get_if<GraphDefinition::Launch>(&node.work)) {
      for (const protocol::LaunchArg& arg : launch->args) {
        if (arg.kind == static_cast<uint8_t>(ArgKind::kElsewhere)) devices.push_back(arg.handle);
      }
    } else if (const auto* condition = std::get_if<GraphDefinition::Condition>(&node.work)) {
      for (const std::vector<DefinedNode>& body : condition->bodies) AddDevices(body, devices);
    }
  }
}

void ListDevices(GraphDefinition& definition) {
  std::vector<uint32_t>& devices = definition.devices;
  AddDevices(definition.nodes, devices);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
}

}  // namespace

std::optional<GraphDefinition> GraphDefinition::Read(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  protocol::GraphDefinition head;
  if (!reader.Read(head) || head.entry_count > kMostEntries) return std::nullopt;
  GraphDefinition definition;
  definition.entry_count = head.entry_count;
  if (!ReadNodes(reader, head.node_count, 0, definition.nodes)) return std::nullopt;
  for (uint32_t n = 0; n < head.patch_count; ++n) {
    if (!ReadPatch(reader, definition)) return std::nullopt;
  }
  if (!reader.IsAtEnd() || !AreFillsWhole(definition)) return std::nullopt;
  ListDevices(definition);
  return definition;
}

}  // namespace millrace
