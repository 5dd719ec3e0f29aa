// Calls of libraries and of other code as nodes of a graph: what a call submits to a captured stream is the child graph
// of its node.
#include <algorithm>
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

Result<std::optional<CapturedGraph>> GraphParts::Capture(const std::shared_ptr<Context>& context,
                                                         const hal::GraphKernel& node, const KernelNode& kernel) {
  const ContextScope scope(context->handle());
  MR_TRY(context->Check(scope.code(), "making the context current"));
  CUgreenCtx const green = kernel.partition.green;
  std::unique_ptr<StreamCapture>& capture = captures[{context.get(), green}];
  if (capture == nullptr) {
    Result<std::unique_ptr<StreamCapture>> made = StreamCapture::Create(context, green);
    MR_TRY(made.status());
    capture = std::move(made).value();
  }
  return static_cast<LibraryKernel&>(*node.kernel).Capture(*capture, kernel.pointers, kernel.workspace, whole);
}

Result<CUgraphNode> GraphWriter::WriteCall(CUgraph graph, Before before, const std::shared_ptr<Context>& context,
                                           const hal::GraphKernel& node, GraphParts::KernelNode& kernel) {
  auto& call = static_cast<LibraryKernel&>(*node.kernel);
  MR_CHECK(&call.context() == context.get());
  if (const CapturedGraph* const captured = call.Captured()) return WriteCaptured(graph, before, *captured, kernel);
  kernel.pointers = hal::ParamPointers(node.params, node.wide);
  if (std::shared_ptr<Communicator> communicator = call.communicator())
    return WriteCollective(graph, before, node, std::move(communicator), context, kernel);
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
  Result<std::optional<CapturedGraph>> captured = parts_.Capture(context, node, kernel);
  MR_TRY(captured.status());
  return WriteCaptured(graph, before, captured.value().value(), kernel);
}

Result<CUgraphNode> GraphWriter::WriteCollective(CUgraph graph, Before before, const hal::GraphKernel& node,
                                                 std::shared_ptr<Communicator> communicator,
                                                 const std::shared_ptr<Context>& context,
                                                 GraphParts::KernelNode& kernel) {
  const auto at = std::ranges::find_if(parts_.kernels, [&](const auto& each) { return &each == &kernel; });
  // Launches replace nothing in a body, so they could not tell how it ended.
  if (at == parts_.kernels.end()) return Status(StatusCode::kUnsupported, "a collective in the body of a condition");
  kernel.is_collective = true;
  for (const std::shared_ptr<Context>& each : communicator->contexts()) parts_.AddContext(*home_, each);
  auto joined = std::ranges::find(parts_.communicators, communicator, &GraphParts::Joined::communicator);
  if (joined == parts_.communicators.end())
    joined = parts_.communicators.insert(joined,
                                         {std::move(communicator), static_cast<uint32_t>(at - parts_.kernels.begin())});
  Result<std::optional<CapturedGraph>> captured = parts_.Capture(context, node, kernel);
  MR_TRY(captured.status());
  if (captured.value()) return WriteCaptured(graph, before, *captured.value(), kernel);
  joined->is_refused = true;
  return WriteEmpty(graph, before);
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
  Result<std::optional<CapturedGraph>> captured = parts_.Capture(ContextOf(parts_.nodes[index]), node, kernel);
  MR_TRY(captured.status());
  return CheckAll(
      Cuda().cuGraphExecChildGraphNodeSetParams(parts_.whole->exec, kernel.node, captured.value().value().handle()),
      "setting the arrays of a library's call, which have to begin at the same multiples of bytes as before");
}

}  // namespace millrace::cuda
