#include "runtime/graph_definition.h"

#include <algorithm>
#include <utility>

#include "runtime/handle_table.h"
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

bool ReadNode(RecordReader& reader, DefinedNode& node, GraphDefinition::Launch launch) {
  protocol::LaunchRecord& record = launch.record;
  if (!reader.ReadFields(record) || record.arg_count > protocol::kMaxLaunchArgs) return false;
  for (const uint32_t extent :
       {record.grid_x, record.grid_y, record.grid_z, record.block_x, record.block_y, record.block_z}) {
    if (extent == 0) return false;
  }
  launch.args.resize(record.arg_count);
  launch.entries.resize(record.arg_count, GraphDefinition::kNoEntry);
  for (protocol::LaunchArg& arg : launch.args) {
    if (!reader.Read(arg) || arg.kind > static_cast<uint8_t>(ArgKind::kVariable)) return false;
  }
  node.work = std::move(launch);
  return true;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, protocol::CopyRecord record) {
  if (!reader.ReadFields(record)) return false;
  node.work = record;
  // Staging memory is for copies that are issued at once.
  return (record.flags & static_cast<uint32_t>(protocol::CopyFlag::kStaged)) == 0;
}

bool ReadNode(RecordReader& reader, DefinedNode& node, protocol::FillRecord record) {
  if (!reader.ReadFields(record)) return false;
  node.work = record;
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
      return ReadNode(reader, node, protocol::CopyRecord{});
    case Opcode::kFill:
      return ReadNode(reader, node, protocol::FillRecord{});
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

bool ReadHead(ByteReader& reader, uint32_t number, DefinedNode& node) {
  protocol::GraphNodeHead head;
  if (!reader.Read(head) || head.after_count > number || head.record_bytes % 8 != 0) return false;
  node.device = head.device;
  for (uint32_t n = 0; n < head.after_count; ++n) {
    uint32_t earlier = 0;
    if (!reader.Read(earlier) || earlier >= number) return false;
    node.after.push_back(earlier);
  }
  uint32_t padding = 0;
  if (head.after_count % 2 != 0 && !reader.Read(padding)) return false;
  const std::optional<std::span<const std::byte>> record = reader.Take(head.record_bytes);
  return record && ReadWork(*record, node);
}

bool ReadPatch(ByteReader& reader, GraphDefinition& definition) {
  protocol::GraphPatch patch;
  if (!reader.Read(patch) || patch.node >= definition.nodes.size() || patch.entry >= definition.entry_count) {
    return false;
  }
  auto* const launch = std::get_if<GraphDefinition::Launch>(&definition.nodes[patch.node].work);
  if (launch == nullptr || patch.arg >= launch->args.size()) return false;
  // A variable is no parameter of the kernel, so there is nothing to replace.
  if (launch->args[patch.arg].kind == static_cast<uint8_t>(ArgKind::kVariable)) return false;
  return std::exchange(launch->entries[patch.arg], patch.entry) == GraphDefinition::kNoEntry;
}

void ListDevices(GraphDefinition& definition) {
  std::vector<uint32_t>& devices = definition.devices;
  for (const DefinedNode& node : definition.nodes) {
    devices.push_back(node.device);
    if (const auto* copy = std::get_if<protocol::CopyRecord>(&node.work)) {
      devices.push_back(copy->dst_device);
      devices.push_back(copy->src_device);
    }
  }
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
  // Nothing is reserved by the counts, which may be wrong.
  for (uint32_t n = 0; n < head.node_count; ++n) {
    if (!ReadHead(reader, n, definition.nodes.emplace_back())) return std::nullopt;
  }
  for (uint32_t n = 0; n < head.patch_count; ++n) {
    if (!ReadPatch(reader, definition)) return std::nullopt;
  }
  if (!reader.IsAtEnd()) return std::nullopt;
  ListDevices(definition);
  return definition;
}

}  // namespace millrace
