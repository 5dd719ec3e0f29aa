// Calls of libraries and of other code as nodes of a graph: what a call submits to a captured stream is the child graph
// of its node.
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/graph.h"
#include "cuda/graph_nodes.h"
#include "cuda/library_kernel.h"

namespace millrace::cuda {

namespace {

/// Nodes may run at the same time, so each has memory of its own. Calls beyond that do without, which takes longer, if
/// they can.
constexpr uint64_t kMostWorkspaceBytes = 256 << 20;

}  // namespace

Result<CapturedGraph> GraphParts::Capture(const std::shared_ptr<Context>& context, const hal::GraphKernel& node,
                                          const KernelNode& kernel) {
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  std::unique_ptr<StreamCapture>& capture = captures[context.get()];
  if (capture == nullptr) {
    Result<std::unique_ptr<StreamCapture>> made = StreamCapture::Create(context);
    MR_TRY(made.status());
    capture = std::move(made).value();
  }
  return capture->Capture([&](CUstream stream) {
    return static_cast<LibraryKernel&>(*node.kernel).Call(stream, kernel.pointers, kernel.workspace);
  });
}

Result<CUgraphNode> GraphWriter::WriteCall(CUgraph graph, Before before, const std::shared_ptr<Context>& context,
                                           const hal::GraphKernel& node, GraphParts::KernelNode& kernel) {
  auto& call = static_cast<LibraryKernel&>(*node.kernel);
  MR_CHECK(&call.context() == context.get());
  if (const CapturedGraph* const captured = call.Captured()) return WriteCaptured(graph, before, *captured, kernel);
  kernel.pointers = hal::ParamPointers(node.params, node.wide);
  // Addresses that a launch gives may be aligned otherwise than those of now.
  const uint64_t bytes = call.MostWorkspaceBytes();
  const bool needs = call.NeedsWorkspace();
  if (bytes > 0 && (needs || bytes <= kMostWorkspaceBytes - parts_.workspace_bytes)) {
    Result<std::unique_ptr<Memory>> memory = Memory::AllocateInterprocess(context, bytes);
    if (memory.ok()) {
      kernel.workspace = memory.value()->address();
      if (!needs) parts_.workspace_bytes += bytes;
      parts_.workspaces.push_back(std::move(memory).value());
    } else if (needs) {
      return memory.status();
    }
  }
  Result<CapturedGraph> captured = parts_.Capture(context, node, kernel);
  MR_TRY(captured.status());
  return WriteCaptured(graph, before, captured.value(), kernel);
}

Result<CUgraphNode> GraphWriter::WriteCaptured(CUgraph graph, Before before, const CapturedGraph& captured,
                                               GraphParts::KernelNode& kernel) {
  size_t nodes = 0;
  MR_TRY(CheckBuilding(*home_, Cuda().cuGraphGetNodes(captured.handle(), nullptr, &nodes),
                       "counting the calls of a library"));
  if (nodes == 0) return WriteEmpty(graph, before);
  MR_TRY(CheckBuilding(
      *home_, Cuda().cuGraphAddChildGraphNode(&kernel.node, graph, before.data(), before.size(), captured.handle()),
      "adding a library's call to a graph"));
  return kernel.node;
}

Status Graph::SetCall(uint32_t index) {
  const auto& node = std::get<hal::GraphKernel>(parts_.nodes[index].work);
  const GraphParts::KernelNode& kernel = parts_.kernels[index];
  Result<CapturedGraph> captured = parts_.Capture(ContextOf(parts_.nodes[index]), node, kernel);
  MR_TRY(captured.status());
  return CheckAll(
      Cuda().cuGraphExecChildGraphNodeSetParams(exec_, kernel.node, captured.value().handle()),
      "setting the arrays of a library's call, which have to begin at the same multiples of bytes as before");
}

}  // namespace millrace::cuda
