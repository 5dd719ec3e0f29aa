#include "cpu/graph.h"

#include <algorithm>
#include <utility>

#include "cpu/device.h"
#include "hal/spin.h"

namespace millrace::cpu {
namespace {

// Light nodes between two checks for a rival; after any other node there is always a check.
constexpr uint32_t kTurnNodes = 32;
// A thread with other work leaves a larger graph to the pool.
constexpr size_t kLightNodes = 32;

}  // namespace

Result<std::unique_ptr<hal::Graph>> CpuGraph::Build(const std::vector<hal::GraphNode>& nodes) {
  Result<std::shared_ptr<GraphCore>> core = GraphCore::Build(nodes);
  MR_TRY(core.status());
  return std::unique_ptr<hal::Graph>(std::make_unique<CpuGraph>(std::move(core.value())));
}

Result<std::shared_ptr<GraphCore>> GraphCore::Build(const std::vector<hal::GraphNode>& nodes) {
  auto core = std::make_shared<GraphCore>();
  MR_TRY(core->Add(core->whole_, nodes, hal::kNoNode));
  core->is_light_ = core->nodes_.size() <= kLightNodes &&
                    std::all_of(core->nodes_.begin(), core->nodes_.end(), [&](const CpuGraphNode& node) {
                      return node.is_light_ && node.condition_ == nullptr && node.pool_ == core->nodes_.front().pool_;
                    });
  return core;
}

// `outer`: the index of the outermost condition around the nodes; kNoNode for the whole graph.
Status GraphCore::Add(GraphPart& part, const std::vector<hal::GraphNode>& nodes, uint32_t outer) {
  part.nodes.reserve(nodes.size());
  for (const hal::GraphNode& source : nodes) {
    const auto index = static_cast<uint32_t>(part.nodes.size());
    Result<std::shared_ptr<ThreadPool>> pool = static_cast<CpuDevice&>(*source.device).PoolOf(source.partition);
    MR_TRY(pool.status());
    CpuGraphNode& node =
        nodes_.emplace_back(*this, part, std::move(pool).value(), outer == hal::kNoNode ? index : outer);
    MR_TRY(AddWork(node, source));
    for (const uint32_t before : source.after) {
      MR_CHECK(before < index);
      std::vector<CpuGraphNode*>& successors = part.nodes[before]->successors_;
      // A time is taken before other nodes begin.
      const bool is_record = std::holds_alternative<hal::GraphRecord>(source.work);
      successors.insert(is_record ? successors.begin() : successors.end(), &node);
    }
    node.before_count_ = static_cast<uint32_t>(source.after.size());
    node.unfinished_before_.store(node.before_count_, std::memory_order_relaxed);
    if (node.before_count_ == 0) part.first.push_back(&node);
    part.nodes.push_back(&node);
  }
  part.last_count = static_cast<uint32_t>(std::count_if(
      part.nodes.begin(), part.nodes.end(), [](const CpuGraphNode* node) { return node->successors_.empty(); }));
  part.unfinished.store(part.last_count, std::memory_order_relaxed);
  return {};
}

Status GraphCore::AddWork(CpuGraphNode& node, const hal::GraphNode& source) {
  if (const auto* condition = std::get_if<hal::GraphCondition>(&source.work)) {
    node.condition_ = std::make_unique<CpuGraphNode::Condition>();
    node.condition_->kind = condition->kind;
    node.condition_->value = condition->value;
    node.condition_->stop = condition->stop;
    for (const std::vector<hal::GraphNode>& nodes : condition->bodies) {
      auto body = std::make_unique<GraphPart>();
      body->condition = &node;
      MR_TRY(Add(*body, nodes, node.index_));
      node.condition_->bodies.push_back(std::move(body));
    }
    return {};
  }
  const auto& device = static_cast<const CpuDevice&>(*source.device);
  Result<std::unique_ptr<NodeWork>> work = MakeNodeWork(source.work, device, node.pool_);
  MR_TRY(work.status());
  if (const auto* kernel = std::get_if<hal::GraphKernel>(&source.work)) {
    kernels_.push_back(kernel->kernel);
    if (IsResident(*kernel)) MR_TRY(GrowThreads(device, kernel->grid));
  }
  node.work_ = std::move(work.value());
  node.is_light_ = node.work_ == nullptr || node.work_->IsLight();
  return {};
}

// The cooperative nodes of a graph share the threads of the largest.
Status GraphCore::GrowThreads(const CpuDevice& device, const hal::Dim3& grid) {
  const uint32_t blocks = grid.x * grid.y * grid.z;
  auto found = std::find_if(together_.begin(), together_.end(),
                            [&](const Together& together) { return together.threads == device.block_threads(); });
  if (found == together_.end()) found = together_.insert(found, {device.block_threads(), 0});
  MR_TRY(found->threads->Grow(found->most, blocks));
  found->most = std::max(found->most, blocks);
  return {};
}

GraphCore::~GraphCore() {
  for (const auto& [threads, most] : together_) threads->Shrink(most);
}

bool GraphCore::Begin(const NodeRun& run, std::span<const hal::GraphPatch> patches, std::shared_ptr<Runnable> stream,
                      std::shared_ptr<ThreadPool> launcher, bool is_pool_thread) {
  MR_CHECK(stream_ == nullptr);
  run_ = run;
  failed_.store(nullptr, std::memory_order_relaxed);
  for (const hal::GraphPatch& patch : patches) {
    if (NodeWork* const work = whole_.nodes[patch.node]->work_.get()) work->SetParam(patch.param, patch.value);
  }
  if (whole_.nodes.empty()) return true;
  stream_ = std::move(stream);
  launcher_ = std::move(launcher);
  Ready ready{.pool = launcher_.get()};
  BeginPart(whole_, ready);
  if (!Drive(ready, is_pool_thread)) return false;
  stream_ = nullptr;
  return true;
}

std::optional<hal::KernelFailure> GraphCore::Failure() const {
  const CpuGraphNode* const node = failed_.load(std::memory_order_acquire);
  if (node == nullptr) return std::nullopt;
  std::optional<hal::KernelFailure> failure = node->work_->Failure();
  if (failure) failure->node = node->index_;
  return failure;
}

void CpuGraphNode::Run() {
  // The caller's reference may end with the launch.
  const std::shared_ptr<GraphCore> core = core_.shared_from_this();
  GraphCore::Ready ready{.pool = pool_.get()};
  core->Push(*this, ready);
  if (core->Drive(ready, true)) core->EndOnPool(*ready.pool);
}

std::shared_ptr<Runnable> CpuGraphNode::Resumption() {
  return core_.Entry(*this);
}

std::shared_ptr<Runnable> GraphCore::Entry(CpuGraphNode& node) {
  return {shared_from_this(), &node};
}

// The stream may begin the next launch as soon as it runs.
void GraphCore::EndOnPool(ThreadPool& pool) {
  const std::shared_ptr<ThreadPool> launcher = std::move(launcher_);
  std::shared_ptr<Runnable> stream = std::exchange(stream_, nullptr);
  if (&pool == launcher.get()) return stream->Run();
  launcher->Schedule(std::move(stream));
}

bool GraphCore::Drive(Ready& ready, bool is_pool_thread) {
  ScheduleFuzzer* const fuzzer = ready.pool->fuzzer();
  uint32_t run = 0;
  while (CpuGraphNode* const node = Take(ready)) {
    if (fuzzer != nullptr) fuzzer->Pause();
    const bool is_light = node->is_light_;
    if (RunNode(*node, ready)) Finish(node, ready);
    if (ready.is_over) return true;
    ++run;
    // With a node in hand the launch is not over, so the next one does not change run_.
    if (!is_pool_thread || !ready.HasAny()) continue;
    const bool must_end = (fuzzer != nullptr && fuzzer->EndsTurn()) ||
                          ((!is_light || run % kTurnNodes == 0) && ready.pool->HasRival(run_.priority));
    if (must_end) PutBackAll(ready);
  }
  return false;
}

// True: it is finished, and the caller goes on with what comes after it.
bool GraphCore::RunNode(CpuGraphNode& node, Ready& ready) {
  if (node.condition_ != nullptr) return RunCondition(node, ready);
  NodeWork* const work = node.work_.get();
  if (work == nullptr) return true;
  if (!node.has_begun_) {
    if (IsSkipping()) return true;
    // Written before Begin, because another thread may resume the node before Begin returns.
    node.has_begun_ = true;
    if (!work->Begin(run_, node)) return false;
  } else if (!work->Resume(node)) {
    return false;
  }
  node.has_begun_ = false;
  CpuGraphNode* none = nullptr;
  if (work->HasFailed()) failed_.compare_exchange_strong(none, &node, std::memory_order_acq_rel);
  return true;
}

// True: no body runs any more.
bool GraphCore::RunCondition(CpuGraphNode& node, Ready& ready) {
  using Kind = hal::GraphCondition::Kind;
  const CpuGraphNode::Condition& condition = *node.condition_;
  const auto& bodies = condition.bodies;
  const Kind kind = condition.kind;
  const bool was_begun = std::exchange(node.has_begun_, true);
  while (!IsSkipping() && !condition.IsStopped() && (kind == Kind::kWhile || !was_begun)) {
    const int32_t now = *condition.value;
    size_t index = 0;
    if (kind == Kind::kSwitch) {
      index = now < 0 ? bodies.size() : static_cast<size_t>(now);
    } else if (now == 0) {
      index = kind == Kind::kIf ? 1 : bodies.size();
    }
    if (index >= bodies.size()) break;
    if (!bodies[index]->nodes.empty()) {
      BeginPart(*bodies[index], ready);
      return false;
    }
    if (kind != Kind::kWhile) break;
    // An empty body: another node, or the host, changes the value.
    RelaxCore();
  }
  node.has_begun_ = false;
  return true;
}

void GraphCore::BeginPart(GraphPart& part, Ready& ready) {
  for (CpuGraphNode* const node : part.first) Offer(*node, ready);
}

// Another thread may finish the launch after the last access to a counter here.
void GraphCore::Finish(CpuGraphNode* node, Ready& ready) {
  while (true) {
    for (CpuGraphNode* const next : node->successors_) {
      if (next->before_count_ > 1) {
        if (next->unfinished_before_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        next->unfinished_before_.store(next->before_count_, std::memory_order_relaxed);
      }
      Offer(*next, ready);
    }
    if (!node->successors_.empty()) return;
    GraphPart& part = node->part_;
    if (part.last_count > 1) {
      if (part.unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      part.unfinished.store(part.last_count, std::memory_order_relaxed);
    }
    node = part.condition;
    if (node == nullptr) {
      ready.is_over = true;
      return;
    }
    if (!RunCondition(*node, ready)) return;
  }
}

// The node is ready. It may have finished when this returns.
void GraphCore::Offer(CpuGraphNode& node, Ready& ready) {
  ScheduleFuzzer* const fuzzer = ready.pool->fuzzer();
  const bool is_own = node.pool_.get() == ready.pool;
  if (is_own && !(fuzzer != nullptr && fuzzer->RefusesHelper())) {
    if (node.is_light_) return Push(node, ready);
    if (ready.kept == nullptr) {
      ready.kept = &node;
      return;
    }
  }
  node.SetPriority(run_.priority);
  node.pool_->Schedule(Entry(node));
}

void GraphCore::Push(CpuGraphNode& node, Ready& ready) {
  node.next_ = nullptr;
  (ready.head == nullptr ? ready.head : ready.tail->next_) = &node;
  ready.tail = &node;
}

// A node that is not light does not wait for light ones if another thread can take it.
CpuGraphNode* GraphCore::Take(Ready& ready) {
  if (ready.head == nullptr) return std::exchange(ready.kept, nullptr);
  if (ready.kept != nullptr) {
    CpuGraphNode* const kept = std::exchange(ready.kept, nullptr);
    kept->SetPriority(run_.priority);
    kept->pool_->Schedule(Entry(*kept));
  }
  CpuGraphNode* const node = ready.head;
  ready.head = node->next_;
  return node;
}

// Something as urgent waits for a thread.
void GraphCore::PutBackAll(Ready& ready) {
  while (CpuGraphNode* const node = ready.head != nullptr ? ready.head : std::exchange(ready.kept, nullptr)) {
    if (node == ready.head) ready.head = node->next_;
    node->SetPriority(run_.priority);
    ready.pool->PutBack(Entry(*node));
  }
}

}  // namespace millrace::cpu
