#include "cuda/graph.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/copies_through_host.h"
#include "cuda/driver_errors.h"
#include "cuda/event_handle.h"

namespace millrace::cuda {

namespace {

/// Keeps the devices from being waited for while a launch that uses them is queued. The home's stream holds its own.
class SubmittingToAll {
 public:
  explicit SubmittingToAll(std::span<const std::shared_ptr<Context>> contexts) : contexts_(contexts) {
    for (const auto& context : contexts_) context->submissions().lock_shared();
  }
  ~SubmittingToAll() {
    for (const auto& context : contexts_) context->submissions().unlock_shared();
  }
  SubmittingToAll(const SubmittingToAll&) = delete;
  SubmittingToAll& operator=(const SubmittingToAll&) = delete;

 private:
  const std::span<const std::shared_ptr<Context>> contexts_;
};

}  // namespace

Result<std::unique_ptr<hal::Graph>> Graph::Build(std::shared_ptr<Context> home, std::vector<hal::GraphNode> nodes) {
  MR_TRY(home->Alive());
  const ContextScope scope(home->handle());
  MR_TRY(home->Check(scope.code(), "making the context current"));
  auto graph = std::make_unique<Graph>(std::move(home));
  MR_TRY(graph->Make(std::move(nodes)));
  return std::unique_ptr<hal::Graph>(std::move(graph));
}

Status Graph::Make(std::vector<hal::GraphNode> nodes) {
  for (const hal::GraphNode& node : nodes) {
    if (const auto* copy = std::get_if<hal::GraphCopy>(&node.work)) copied_bytes_ += copy->bytes;
    if (const auto* copy = std::get_if<hal::GraphPeerCopy>(&node.work)) copied_bytes_ += copy->copy.bytes;
  }
  ExecutableGraph& whole = *parts_.whole;
  const ExecutableGraph::Use use(whole);
  MR_TRY(CheckBuilding(*home_, Cuda().cuGraphCreate(&whole.graph, 0), "making a graph"));
  MR_TRY(GraphWriter(home_, parts_).WriteWhole(whole.graph, std::move(nodes)));
  return CheckBuilding(*home_, Cuda().cuGraphInstantiateWithFlags(&whole.exec, whole.graph, 0),
                       "instantiating a graph");
}

Graph::~Graph() {
  parts_.whole->End();
}

Status Graph::Launch(CUstream stream, std::span<const hal::GraphPatch> patches) {
  if (parts_.communicators.empty()) return LaunchWhole(stream, patches);
  // The slots of this launch. Nothing else of a collective changes, so it's no matter if the launch fails.
  for (const hal::GraphPatch& patch : patches)
    if (parts_.kernels[patch.node].is_collective)
      hal::SetParam(parts_.nodes[patch.node].work, patch.param, patch.value);
  const ExecutableGraph::Use use(*parts_.whole);
  std::vector<std::pair<Communicator*, Communicator::Launch>> launches;
  bool is_over = false;
  for (const GraphParts::Joined& joined : parts_.communicators) {
    const std::vector<uint64_t>& params = std::get<hal::GraphKernel>(parts_.nodes[joined.node].work).params;
    const std::optional<Communicator::Launch> begun =
        joined.communicator->Begin(home_, reinterpret_cast<protocol::FaultSlot*>(params[params.size() - 2]),
                                   reinterpret_cast<uint32_t*>(params.back()));
    if (begun && joined.is_refused) joined.communicator->Refuse(*begun);
    if (begun && !joined.is_refused) {
      launches.emplace_back(joined.communicator.get(), *begun);
    } else {
      is_over = true;
    }
  }
  Status status = is_over ? Status() : LaunchWhole(stream, patches);
  const bool is_queued = !is_over && status.ok();
  for (const auto& [communicator, launch] : launches) {
    if (!is_queued) {
      communicator->Cancel(launch);
      continue;
    }
    const Status ended = communicator->End(launch, stream, {});
    if (status.ok()) status = ended;
  }
  return status;
}

Status Graph::LaunchWhole(CUstream stream, std::span<const hal::GraphPatch> patches) {
  MR_TRY(OthersAlive());
  replaced_.clear();
  for (const hal::GraphPatch& patch : patches) {
    const GraphParts::KernelNode& kernel = parts_.kernels[patch.node];
    const bool has_param = kernel.node != nullptr && kernel.event == nullptr;
    replaced_.push_back(has_param ? hal::ParamOf(parts_.nodes[patch.node].work, patch.param) : 0);
    Replace(patch, patch.value);
  }
  Status status = SetChanged();
  if (status.ok()) status = Queue(stream);
  if (status.ok()) return status;
  // Rule G4. The next launch sets the old values again where the executable graph has new ones.
  for (size_t i = patches.size(); i-- > 0;) Replace(patches[i], replaced_[i]);
  return status;
}

Status Graph::Upload(CUstream stream) {
  MR_TRY(OthersAlive());
  const ExecutableGraph::Use use(*parts_.whole);
  // A communicator of it has ended, as each launch will tell.
  if (parts_.whole->exec == nullptr) return {};
  const SubmittingToAll submitting(parts_.others);
  return CheckAll(Cuda().cuGraphUpload(parts_.whole->exec, stream), "uploading a graph");
}

Status Graph::OthersAlive() const {
  for (const std::shared_ptr<Context>& other : parts_.others) {
    if (other->is_lost()) return {StatusCode::kUpstream, "launching a graph with nodes on a lost device"};
  }
  return {};
}

void Graph::Replace(const hal::GraphPatch& patch, uint64_t value) {
  GraphParts::KernelNode& kernel = parts_.kernels[patch.node];
  // A kernel without blocks is an empty node. A copy reports nothing on this backend.
  hal::GraphWork& work = parts_.nodes[patch.node].work;
  const bool is_report = std::holds_alternative<hal::GraphCopy>(work) && patch.param == hal::GraphPatch::kReport;
  if (kernel.node == nullptr || kernel.is_collective || is_report) return;
  if (kernel.event != nullptr) {
    kernel.event = EventOf(patch.node, value);
  } else {
    hal::SetParam(work, patch.param, value);
  }
  if (!std::exchange(kernel.is_changed, true)) changed_.push_back(patch.node);
}

/// Without a value, the event that the graph was built with.
CUevent Graph::EventOf(uint32_t node, uint64_t value) {
  auto* const given = reinterpret_cast<hal::EventHandle*>(value);
  hal::EventHandle& own = *std::get<hal::GraphRecord>(parts_.nodes[node].work).event;
  return static_cast<EventHandle&>(given == nullptr ? own : *given).event();
}

Status Graph::SetChanged() {
  for (; !changed_.empty(); changed_.pop_back()) {
    GraphParts::KernelNode& kernel = parts_.kernels[changed_.back()];
    const auto* call = std::get_if<hal::GraphKernel>(&parts_.nodes[changed_.back()].work);
    if (call != nullptr && call->kernel->IsOfLibrary()) {
      MR_TRY(SetCall(changed_.back()));
    } else {
      MR_TRY(CheckAll(parts_.Set(parts_.whole->exec, changed_.back()), "setting the parameters of a graph's node"));
    }
    kernel.is_changed = false;
  }
  return {};
}

Status Graph::Queue(CUstream stream) {
  const SubmittingToAll submitting(parts_.others);
  return CheckAll(Cuda().cuGraphLaunch(parts_.whole->exec, stream), "launching a graph");
}

Status Graph::CheckAll(CUresult code, const char* note) {
  if (!IsSticky(code) || parts_.others.empty()) return home_->Check(code, note);
  // The fault may be any device's.
  for (const std::shared_ptr<Context>& other : parts_.others) {
    const bool is_last = other == parts_.others.back();
    if (is_last || !other->Ask().ok()) return CheckAmong(*home_, {other.get()}, code, note);
  }
  return home_->Check(code, note);
}

}  // namespace millrace::cuda
