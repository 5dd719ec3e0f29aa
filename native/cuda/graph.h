// A CUDA graph: a CUgraph with a node for each of the runtime's (graph_nodes.h), and its executable form.
//
// The driver copies a launch's parameters when it is queued, so a patch for a later launch does not reach it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "cuda/graph_nodes.h"
#include "hal/graph.h"

namespace millrace::cuda {

class Graph final : public hal::Graph {
 public:
  /// kUnsupported: the driver is older than CUDA 12.0, or 12.4 if there are conditions. Thread: blocking calls.
  static Result<std::unique_ptr<hal::Graph>> Build(std::shared_ptr<Context> home, std::vector<hal::GraphNode> nodes);
  explicit Graph(std::shared_ptr<Context> home) : home_(std::move(home)) {
    parts_.whole = std::make_shared<ExecutableGraph>(home_);
  }
  ~Graph() override;

  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] const Context& home() const { return *home_; }
  /// The bytes that the copies of a launch move, without those in bodies of conditions.
  [[nodiscard]] uint64_t copied_bytes() const { return copied_bytes_; }
  /// Queues a launch. Where a communicator of it has ended, nothing is queued, and its fault slot says why. With the
  /// home's context current. Thread: channel of the home.
  Status Launch(CUstream stream, std::span<const hal::GraphPatch> patches);
  /// Queues the upload that the first launch would do. As Launch.
  Status Upload(CUstream stream);

 private:
  Status Make(std::vector<hal::GraphNode> nodes);
  Status LaunchWhole(CUstream stream, std::span<const hal::GraphPatch> patches);
  void Replace(const hal::GraphPatch& patch, uint64_t value);
  [[nodiscard]] CUevent EventOf(uint32_t node, uint64_t value);
  Status SetChanged();
  /// As GraphParts::Set, of a library's call.
  Status SetCall(uint32_t index);
  [[nodiscard]] Status OthersAlive() const;
  Status Queue(CUstream stream);
  Status CheckAll(CUresult code, const char* note);

  const std::shared_ptr<Context> home_;
  GraphParts parts_;
  uint64_t copied_bytes_ = 0;
  std::vector<uint32_t> changed_;   // Nodes whose parameters the executable graph does not have yet.
  std::vector<uint64_t> replaced_;  // The values before the patches of the running call.
};

}  // namespace millrace::cuda
