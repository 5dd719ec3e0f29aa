// Graphs: work with dependencies that a backend builds once and launches many times.
//
// The runtime lists the nodes in an order in which every node comes after those that it depends on. A backend copies
// the list into a form of its own (a CUgraphExec, or a task graph for the CPU pool), so that a launch costs one call.
//
// Rules, besides those of hal/hal.h. Tests cite them as G1 to G8.
//  G1. A node begins when all nodes that it comes after have finished and their effects are visible to it. Nodes
//      without a path between them may run at the same time and in any order.
//  G2. A launch is one item of its stream: its nodes begin after the stream's earlier work, and its ticket completes
//      when all nodes have finished.
//  G3. The runtime orders the launches of one graph: it submits a launch only if every earlier launch of that graph
//      comes before it in stream order, on the same stream or through a Wait.
//  G4. A patch holds for the launch that names it and for later ones, never for a launch that was submitted earlier. A
//      launch that fails at the call applies none of its patches.
//  G5. The nodes of one graph may belong to several devices of the backend. Each runs on its own device. The graph's
//      home is the device that built it, and only streams of the home launch it. All these devices stay open as long
//      as the graph exists. A graph keeps its kernels' modules and its host leases alive.
//  G6. If a kernel node fails in a way that the backend reports through ProgressSink::Failed, the nodes of this launch
//      that have not begun are skipped. The sink is told once, before the ticket completes, with the index of the
//      node. Later launches run all nodes again.
//  G7. Device::Cancel of the home stops a launch in the middle if the backend can: no further node begins, running
//      kernels stop as those of other launches do, and the ticket never completes.
//  G8. A launch may submit nothing that takes memory for each node. Building may take long; launching never blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "hal/hal.h"

namespace millrace::hal {

/// Does nothing: joins its dependencies.
struct GraphEmpty {};

/// As LaunchRequest. Each parameter begins a word of `params`, in whose low bytes a scalar is. Patches name its word.
struct GraphKernel {
  std::shared_ptr<Kernel> kernel;
  Dim3 grid;
  Dim3 block;
  uint32_t shared_bytes = 0;
  bool is_cooperative = false;
  uint32_t kernel_id = 0;
  std::vector<uint64_t> params;
  std::vector<WideParam> wide;
  /// Other devices whose pool it uses. The graph keeps that open for the node's device as long as it exists.
  std::vector<Device*> peers;
};

/// As Stream::Copy: each side is memory of the node's device or page-locked host memory.
struct GraphCopy {
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  uint64_t bytes = 0;
  HostLeases host;
};

/// As Stream::CopyPeer. The graph has staging memory of its own.
struct GraphPeerCopy {
  PeerCopy copy;
};

/// As Stream::Fill. `count` may be 0.
struct GraphFill {
  std::byte* dst = nullptr;
  uint32_t element_bytes = 0;
  uint64_t pattern = 0;
  uint64_t count = 0;
  bool is_patched = false;  // Patches replace parts of it; `count` is never 0 then.
};

/// As Stream::CopyStrided, or as Stream::FillStrided if `src` is null.
struct GraphStrided {
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  uint32_t element_bytes = 0;
  uint64_t pattern = 0;
  std::vector<StridedAxis> axes;
};

/// As Stream::Record of a timing event: the time at which everything that the node comes after has finished. On the
/// graph's home only, and outside of condition bodies.
struct GraphRecord {
  /// Of the launches that no patch gives another one.
  std::shared_ptr<EventHandle> event;
};

struct GraphNode;

/// Runs bodies as often as a value in device memory says, which is read when the node is reached. cudaGraphCondType.
struct GraphCondition {
  enum class Kind : uint8_t {
    kIf,      // One body if the value is not 0; a second body, if there is one, otherwise.
    kWhile,   // The only body, as long as the value is not 0. Read before each iteration.
    kSwitch,  // The body with the value's index; none if there is no such body.
  };
  Kind kind = Kind::kIf;
  const int32_t* value = nullptr;
  /// Not null: when this word is not 0, because a kernel of the graph has reported a fault there, no further body
  /// begins. So a loop whose condition a failed kernel would have changed ends.
  const uint32_t* stop = nullptr;
  /// In bodies, `after` counts the nodes of the body.
  std::vector<std::vector<GraphNode>> bodies;
};

using GraphWork = std::variant<GraphEmpty, GraphKernel, GraphCopy, GraphPeerCopy, GraphFill, GraphStrided, GraphRecord,
                               GraphCondition>;

struct GraphNode {
  /// The device that runs it: of the graph's backend, and open as long as the graph exists.
  Device* device = nullptr;
  /// The id of a partition of the device, on whose share kernels run whatever stream launches the graph; 0: the whole
  /// device. Other work may run elsewhere on the device.
  uint32_t partition = 0;
  GraphWork work;
  /// The indices of the nodes that it comes after; each smaller than its own, and each once.
  std::vector<uint32_t> after;
};

/// Another value for a parameter of a node outside of condition bodies: of a kernel, of a copy in one device and host
/// memory, of a fill with `is_patched`, or another event for a node that records one. It holds for this launch and,
/// unless replaced, for later ones.
struct GraphPatch {
  /// The `param` of a copy's HostLeases::report, if it has one; its value is the slot's address.
  static constexpr uint32_t kReport = 0;
  /// The `param` of a recorded event; its value is the address of an EventHandle, which exists until the launches that
  /// record it have completed.
  static constexpr uint32_t kEvent = 0;
  /// Of a copy or fill: an address in the memory of the same device as the former one.
  static constexpr uint32_t kDst = 1;
  static constexpr uint32_t kSrc = 2;
  /// Of a fill.
  static constexpr uint32_t kPattern = 3;
  static constexpr uint32_t kCount = 4;
  uint32_t node = 0;
  uint32_t param = 0;
  uint64_t value = 0;
};

/// The value that a patch of this parameter replaces.
[[nodiscard]] inline uint64_t ParamOf(const GraphWork& work, uint32_t param) {
  if (const auto* kernel = std::get_if<GraphKernel>(&work)) return kernel->params[param];
  if (const auto* copy = std::get_if<GraphCopy>(&work)) {
    if (param == GraphPatch::kReport) return reinterpret_cast<uintptr_t>(copy->host.report);
    return reinterpret_cast<uintptr_t>(param == GraphPatch::kDst ? copy->dst : copy->src);
  }
  const auto& fill = std::get<GraphFill>(work);
  if (param == GraphPatch::kDst) return reinterpret_cast<uintptr_t>(fill.dst);
  return param == GraphPatch::kPattern ? fill.pattern : fill.count;
}

inline void SetParam(GraphWork& work, uint32_t param, uint64_t value) {
  if (auto* kernel = std::get_if<GraphKernel>(&work)) {
    kernel->params[param] = value;
  } else if (auto* copy = std::get_if<GraphCopy>(&work)) {
    if (param == GraphPatch::kReport) {
      copy->host.report = reinterpret_cast<protocol::FaultSlot*>(value);
    } else if (param == GraphPatch::kDst) {
      copy->dst = reinterpret_cast<std::byte*>(value);
    } else {
      copy->src = reinterpret_cast<const std::byte*>(value);
    }
  } else {
    auto& fill = std::get<GraphFill>(work);
    if (param == GraphPatch::kDst) {
      fill.dst = reinterpret_cast<std::byte*>(value);
    } else {
      (param == GraphPatch::kPattern ? fill.pattern : fill.count) = value;
    }
  }
}

/// A graph that can be launched. Destroyed after its last launch has completed.
class Graph {
 public:
  virtual ~Graph() = default;
};

struct GraphLaunchRequest {
  Graph* graph = nullptr;
  /// Valid during the call only.
  std::span<const GraphPatch> patches;
};

}  // namespace millrace::hal
