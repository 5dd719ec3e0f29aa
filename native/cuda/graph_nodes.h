// Adds the runtime's nodes to a driver's graph, as explicit nodes.
//
// Most nodes become one node of the driver; a fill with 8-byte elements and a strided copy or fill become launches of
// the built-in kernels. A copy between devices that are no peers becomes a chain of copies through host memory. A
// condition becomes a kernel that reads the value and sets the driver's condition, and a conditional node; `else` and
// `switch` have a pair for each body, because drivers before CUDA 12.8 have only `if` and `while`. Other nodes come
// after an empty node that joins these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/communicator.h"
#include "cuda/context.h"
#include "cuda/executable_graph.h"
#include "cuda/memory.h"
#include "cuda/module.h"
#include "cuda/partitions.h"
#include "cuda/peers.h"
#include "cuda/stream_capture.h"
#include "hal/graph.h"

namespace millrace::cuda {

class Device;

/// An address in the parameters of a driver's node.
inline uint64_t AddressOf(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address);
}

/// What a graph needs as long as it exists.
struct GraphParts {
  /// A node outside of bodies that patches can change: a kernel, a copy, a fill, or the record of an event. The node is
  /// null for another work, and for a kernel without blocks.
  struct KernelNode {
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params = {};  // Of a kernel, or of a fill with 8-byte elements.
    std::vector<void*> pointers;
    CUevent event = nullptr;         // Of a record.
    Partition partition;             // Of none: the whole device. Its green context is kept for the process.
    std::byte* workspace = nullptr;  // Of a library's call.
    bool is_collective = false;      // Of a fault slot alone, which the call itself does not use, there are patches.
    bool is_changed = false;
  };

  /// Gives the executable graph the present values of a node.
  CUresult Set(CUgraphExec exec, uint32_t node);
  /// The graph of a library's call with the present parameters of its node, as LibraryKernel::Capture. Thread: that of
  /// the graph's builder, and then the home's channel.
  Result<std::optional<CapturedGraph>> Capture(const std::shared_ptr<Context>& context, const hal::GraphKernel& node,
                                               const KernelNode& kernel);
  /// A node runs on this device, or uses it.
  void AddContext(const Context& home, const std::shared_ptr<Context>& context);

  /// A communicator with collectives among the nodes.
  struct Joined {
    std::shared_ptr<Communicator> communicator;
    uint32_t node = 0;  // The first one, whose fault slot tells how the launch ended.
    bool is_refused = false;
  };

  std::vector<hal::GraphNode> nodes;                  // Hold the kernels, the host leases and the parameters.
  std::vector<KernelNode> kernels;                    // One for each node of any kind.
  std::vector<std::shared_ptr<Context>> others;       // Of the nodes; without the home.
  std::vector<std::unique_ptr<PoolAccess>> accesses;  // Of copies between devices, and of kernels.
  std::vector<std::unique_ptr<LockedBlock>> staging;  // One for each copy between devices through the host.
  /// Of libraries' calls, by device and partition.
  std::map<std::pair<const Context*, CUgreenCtx>, std::unique_ptr<StreamCapture>> captures;
  std::vector<std::unique_ptr<Memory>> workspaces;  // Of libraries' calls.
  uint64_t workspace_bytes = 0;
  std::vector<Joined> communicators;
  std::shared_ptr<ExecutableGraph> whole;
  std::map<const Context*, std::shared_ptr<Kernel>> conditions;  // The kernel that sets conditions, by device.
};

/// Of the device that runs a node.
const std::shared_ptr<Context>& ContextOf(const hal::GraphNode& node);

/// The Status of a call that builds a graph: kUnsupported if the driver does not have the function.
Status CheckBuilding(Context& context, CUresult code, const char* note);

/// Thread: blocking calls, with the home's context current.
class GraphWriter {
 public:
  GraphWriter(std::shared_ptr<Context> home, GraphParts& parts) : home_(std::move(home)), parts_(parts) {}

  /// Adds all nodes.
  Status WriteWhole(CUgraph graph, std::vector<hal::GraphNode> nodes);

 private:
  using Before = std::span<const CUgraphNode>;

  /// `last` receives those that no other comes after.
  Status Write(CUgraph graph, std::span<const hal::GraphNode> nodes, bool is_whole, std::vector<CUgraphNode>* last);
  /// Adds a node with the context current that decides where its kernels run.
  [[nodiscard]] Result<CUgraphNode> WriteOnShare(CUgraph graph, Before before, const hal::GraphNode& node,
                                                 GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteOne(CUgraph graph, Before before, const hal::GraphNode& node,
                                             GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteEmpty(CUgraph graph, Before before);
  [[nodiscard]] Result<CUgraphNode> WriteKernel(CUgraph graph, Before before, const hal::GraphKernel& node,
                                                GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteCall(CUgraph graph, Before before, const std::shared_ptr<Context>& context,
                                              const hal::GraphKernel& node, GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteCollective(CUgraph graph, Before before, const hal::GraphKernel& node,
                                                    std::shared_ptr<Communicator> communicator,
                                                    const std::shared_ptr<Context>& context,
                                                    GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteCaptured(CUgraph graph, Before before, const CapturedGraph& captured,
                                                  GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteRecord(CUgraph graph, Before before, const hal::GraphRecord& node,
                                                GraphParts::KernelNode& record);
  [[nodiscard]] Result<CUgraphNode> WriteLaunch(CUgraph graph, Before before, const Kernel& kernel, unsigned int blocks,
                                                unsigned int block, void** params);
  [[nodiscard]] Result<CUgraphNode> WriteCopy(CUgraph graph, Before before, Context& context, uint64_t dst,
                                              uint64_t src, uint64_t bytes);
  [[nodiscard]] Result<CUgraphNode> WritePeerCopy(CUgraph graph, Before before, const hal::PeerCopy& copy);
  /// The graph keeps the owner's pool open for the peer from now on.
  Status TakeAccess(const Device& owner, const std::shared_ptr<Context>& peer);
  [[nodiscard]] Result<CUgraphNode> WriteStagedCopy(CUgraph graph, Before before, const hal::PeerCopy& copy);
  [[nodiscard]] Result<CUgraphNode> WriteFill(CUgraph graph, Before before, const hal::GraphNode& on, uint64_t dst,
                                              uint32_t element_bytes, uint64_t pattern, uint64_t count);
  [[nodiscard]] Result<CUgraphNode> WritePatchedFill(CUgraph graph, Before before, const hal::GraphNode& on,
                                                     const hal::GraphFill& fill, GraphParts::KernelNode& kernel);
  [[nodiscard]] Result<CUgraphNode> WriteStrided(CUgraph graph, Before before, const hal::GraphNode& on,
                                                 const hal::GraphStrided& node);
  [[nodiscard]] Result<CUgraphNode> WriteCondition(CUgraph graph, Before before, const hal::GraphNode& on,
                                                   const hal::GraphCondition& node);
  /// The node that sets `handle` to whether the condition's value equals `expected`, or differs from it.
  [[nodiscard]] Result<CUgraphNode> WriteSetting(CUgraph graph, Before before, const std::shared_ptr<Context>& context,
                                                 CUgraphConditionalHandle handle, const hal::GraphCondition& node,
                                                 int expected, bool is_equal);

  const std::shared_ptr<Context> home_;
  GraphParts& parts_;
};

}  // namespace millrace::cuda
