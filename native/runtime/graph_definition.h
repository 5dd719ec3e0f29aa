// A graph's definition, read from the bytes of `defineGraph` and checked as far as that needs no memory and no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "protocol/protocol.gen.h"
#include "runtime/strided.h"

namespace millrace {

struct GraphDefinition {
  /// The entry of an argument that no entry replaces.
  static constexpr uint32_t kNoEntry = UINT32_MAX;

  struct Launch {
    protocol::LaunchRecord record;
    std::vector<protocol::LaunchArg> args;
    std::vector<uint32_t> entries;  // For each argument, the entry of each launch that replaces it.
    std::vector<uint64_t> bytes;    // Of the parameters by value.
  };
  struct Copy {
    protocol::CopyRecord record;
    // The entries of each launch that replace the memory of an end.
    uint32_t dst_entry = kNoEntry;
    uint32_t src_entry = kNoEntry;
  };
  struct Fill {
    protocol::FillRecord record;
    uint32_t memory_entry = kNoEntry;
    uint32_t pattern_entry = kNoEntry;
    uint32_t count_entry = kNoEntry;
  };
  struct CopyStrided {
    protocol::CopyStridedRecord record;
    StridedAxes axes;
  };
  struct FillStrided {
    protocol::FillStridedRecord record;
    StridedAxes axes;
  };
  struct Node;
  struct Condition {
    protocol::GraphCondition head;
    std::vector<std::vector<Node>> bodies;  // Of the condition's device.
  };
  struct Node {
    uint32_t device = 0;
    uint32_t partition = 0;       // Of the device; 0: the whole device.
    std::vector<uint32_t> after;  // In a body, these count the nodes of the body.
    std::variant<protocol::NopRecord, Launch, Copy, CopyStrided, Fill, FillStrided, protocol::RecordEventRecord,
                 Condition>
        work;
  };

  std::vector<Node> nodes;
  uint32_t entry_count = 0;
  std::vector<uint32_t> devices;  // All that it names, ascending.

  /// Nothing if the bytes are malformed.
  [[nodiscard]] static std::optional<GraphDefinition> Read(std::span<const std::byte> bytes);
};

}  // namespace millrace
