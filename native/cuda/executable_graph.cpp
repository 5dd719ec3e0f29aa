#include "cuda/executable_graph.h"

#include <tuple>

#include "cuda/context_scope.h"

namespace millrace::cuda {

ExecutableGraph::~ExecutableGraph() {
  End();
}

void ExecutableGraph::End() {
  is_over_ = true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // Who uses it ends it afterwards.
  if (!lock.owns_lock()) return;
  const CUgraphExec launched = std::exchange(exec, nullptr);
  const CUgraph listed = std::exchange(graph, nullptr);
  if (home_->is_lost()) return;
  const ContextScope scope(home_->handle());
  if (scope.code() != CUDA_SUCCESS) return;
  if (launched != nullptr) std::ignore = home_->Check(Cuda().cuGraphExecDestroy(launched), "destroying a graph");
  if (listed != nullptr) std::ignore = home_->Check(Cuda().cuGraphDestroy(listed), "destroying a graph");
}

}  // namespace millrace::cuda
