// Definitions of graphs, written as the owner writes them.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "protocol/protocol.gen.h"

namespace millrace::testing {

using ByteList = std::vector<std::byte>;

template <typename T>
void Append(ByteList& bytes, const T& value) {
  const auto* const from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(value));
}

/// A record with what follows it.
template <typename T, typename Tail = protocol::LaunchArg>
ByteList RecordBytes(T record, const std::vector<Tail>& tail = {}) {
  const auto size = static_cast<uint32_t>(sizeof(T) + tail.size() * sizeof(Tail));
  const protocol::RecordHeader header{static_cast<uint16_t>(T::kOpcode), 0, size, 0, 0};
  std::memcpy(&record, &header, sizeof(header));
  ByteList bytes;
  Append(bytes, record);
  for (const Tail& each : tail) Append(bytes, each);
  return bytes;
}

inline protocol::LaunchArg MemoryArg(uint32_t handle, protocol::Access access, uint64_t offset = 0) {
  return {.kind = static_cast<uint8_t>(protocol::ArgKind::kMemory),
          .access = static_cast<uint8_t>(access),
          .size = 8,
          .handle = handle,
          .value = offset};
}
inline protocol::LaunchArg ScalarArg(uint64_t value) {
  return {.kind = static_cast<uint8_t>(protocol::ArgKind::kScalar), .size = 8, .value = value};
}

inline ByteList LaunchBytes(uint32_t kernel, const std::vector<protocol::LaunchArg>& args, uint32_t threads = 1) {
  protocol::LaunchRecord record{.kernel = kernel, .arg_count = static_cast<uint32_t>(args.size())};
  record.grid_x = record.grid_y = record.grid_z = record.block_y = record.block_z = 1;
  record.block_x = threads;
  return RecordBytes(record, args);
}
inline ByteList FillBytes(uint32_t handle, uint64_t count, uint64_t offset = 0) {
  return RecordBytes(
      protocol::FillRecord{.handle = handle, .element_bytes = 1, .offset = offset, .count = count, .pattern = 1});
}

class GraphBytes {
 public:
  /// Returns its index.
  uint32_t Node(uint32_t device, const ByteList& record, const std::vector<uint32_t>& after = {}) {
    Append(nodes_, protocol::GraphNodeHead{.device = device,
                                           .after_count = static_cast<uint32_t>(after.size()),
                                           .record_bytes = static_cast<uint32_t>(record.size())});
    for (const uint32_t earlier : after) Append(nodes_, earlier);
    if (after.size() % 2 != 0) Append(nodes_, uint32_t{0});
    nodes_.insert(nodes_.end(), record.begin(), record.end());
    return node_count_++;
  }
  /// Returns its index. The bodies have no patches.
  uint32_t Condition(uint32_t device, const protocol::GraphCondition& head, const std::vector<GraphBytes>& bodies,
                     const std::vector<uint32_t>& after = {}) {
    const uint32_t index = Node(device, {}, after);
    protocol::GraphCondition written = head;
    written.body_count = static_cast<uint32_t>(bodies.size());
    Append(nodes_, written);
    for (const GraphBytes& body : bodies) {
      Append(nodes_, protocol::GraphBody{.node_count = body.node_count_});
      nodes_.insert(nodes_.end(), body.nodes_.begin(), body.nodes_.end());
    }
    return index;
  }
  void Patch(uint32_t node, uint32_t arg, uint32_t entry) {
    Append(patches_, protocol::GraphPatch{.node = node, .arg = arg, .entry = entry});
    ++patch_count_;
    if (entry >= entry_count_) entry_count_ = entry + 1;
  }
  [[nodiscard]] ByteList Bytes() const {
    ByteList bytes;
    Append(bytes, protocol::GraphDefinition{
                      .node_count = node_count_, .patch_count = patch_count_, .entry_count = entry_count_});
    bytes.insert(bytes.end(), nodes_.begin(), nodes_.end());
    bytes.insert(bytes.end(), patches_.begin(), patches_.end());
    return bytes;
  }

 private:
  ByteList nodes_;
  ByteList patches_;
  uint32_t node_count_ = 0;
  uint32_t patch_count_ = 0;
  uint32_t entry_count_ = 0;
};

}  // namespace millrace::testing
