#include "cpu/graph.h"

#include <algorithm>
#include <utility>

#include "cpu/cpu_pause.h"
#include "cpu/device.h"

namespace millrace::cpu {
namespace {

// Light nodes between two checks for a rival; after any other node there is always a check.
constexpr uint32_t kTurnNodes = 32;
// A thread with other work leaves a larger graph to the pool.
constexpr size_t kLightNodes = 32;

}  // namespace

Result<std::unique_ptr<hal::Graph>> CpuGraph::Build(std::shared_ptr<ThreadPool> home,
                                                    const std::vector<hal::GraphNode>& nodes) {
  Result<std::shared_ptr<GraphCore>> core = GraphCore::Build(std::move(home), nodes);
  MR_TRY(core.status());
  return std::unique_ptr<hal::Graph>(std::make_unique<CpuGraph>(std::move(core.value())));
}

Result<std::shared_ptr<GraphCore>> GraphCore::Build(std::shared_ptr<ThreadPool> home,
                                                    const std::vector<hal::GraphNode>& nodes) {
  auto core = std::make_shared<GraphCore>(std::move(home));
  MR_TRY(core->Add(core->whole_, nodes, hal::kNoNode));
  core->is_light_ = core->tasks_.size() <= kLightNodes &&
                    std::all_of(core->tasks_.begin(), core->tasks_.end(), [&](const GraphTask& task) {
                      return task.is_light_ && task.condition_ == nullptr && task.pool_ == core->home_;
                    });
  return core;
}

// `outer`: the index of the outermost condition around the nodes; kNoNode for the whole graph.
Status GraphCore::Add(GraphPart& part, const std::vector<hal::GraphNode>& nodes, uint32_t outer) {
  part.tasks.reserve(nodes.size());
  for (const hal::GraphNode& node : nodes) {
    const auto index = static_cast<uint32_t>(part.tasks.size());
    const auto& device = static_cast<const CpuDevice&>(*node.device);
    GraphTask& task = tasks_.emplace_back(*this, part, device.pool(), outer == hal::kNoNode ? index : outer);
    MR_TRY(AddWork(task, node));
    for (const uint32_t before : node.after) {
      MR_CHECK(before < index);
      std::vector<GraphTask*>& successors = part.tasks[before]->successors_;
      // A time is taken before other nodes begin.
      const bool is_record = std::holds_alternative<hal::GraphRecord>(node.work);
      successors.insert(is_record ? successors.begin() : successors.end(), &task);
    }
    task.before_count_ = static_cast<uint32_t>(node.after.size());
    task.unfinished_before_.store(task.before_count_, std::memory_order_relaxed);
    if (task.before_count_ == 0) part.first.push_back(&task);
    part.tasks.push_back(&task);
  }
  part.last_count = static_cast<uint32_t>(std::count_if(
      part.tasks.begin(), part.tasks.end(), [](const GraphTask* task) { return task->successors_.empty(); }));
  part.unfinished.store(part.last_count, std::memory_order_relaxed);
  return {};
}

Status GraphCore::AddWork(GraphTask& task, const hal::GraphNode& node) {
  if (const auto* condition = std::get_if<hal::GraphCondition>(&node.work)) {
    task.condition_ = std::make_unique<GraphTask::Condition>();
    task.condition_->kind = condition->kind;
    task.condition_->value = condition->value;
    task.condition_->stop = condition->stop;
    for (const std::vector<hal::GraphNode>& nodes : condition->bodies) {
      auto body = std::make_unique<GraphPart>();
      body->condition = &task;
      MR_TRY(Add(*body, nodes, task.node_));
      task.condition_->bodies.push_back(std::move(body));
    }
    return {};
  }
  const auto& device = static_cast<const CpuDevice&>(*node.device);
  Result<std::unique_ptr<NodeWork>> work = MakeNodeWork(node.work, device);
  MR_TRY(work.status());
  if (const auto* kernel = std::get_if<hal::GraphKernel>(&node.work)) {
    kernels_.push_back(kernel->kernel);
    if (IsResident(*kernel)) MR_TRY(GrowThreads(device, kernel->grid));
  }
  task.work_ = std::move(work.value());
  task.is_light_ = task.work_ == nullptr || task.work_->IsLight();
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
                      bool is_pool_thread) {
  MR_CHECK(stream_ == nullptr);
  run_ = run;
  failed_.store(nullptr, std::memory_order_relaxed);
  for (const hal::GraphPatch& patch : patches) {
    if (NodeWork* const work = whole_.tasks[patch.node]->work_.get()) work->SetParam(patch.param, patch.value);
  }
  if (whole_.tasks.empty()) return true;
  stream_ = std::move(stream);
  Ready ready{.pool = home_.get()};
  BeginPart(whole_, ready);
  if (!Drive(ready, is_pool_thread)) return false;
  stream_ = nullptr;
  return true;
}

std::optional<hal::KernelFailure> GraphCore::Failure(std::span<const uint64_t> outputs) const {
  const GraphTask* const task = failed_.load(std::memory_order_acquire);
  if (task == nullptr) return std::nullopt;
  std::optional<hal::KernelFailure> failure = task->work_->Failure();
  if (failure) {
    failure->node = task->node_;
    failure->outputs = outputs;
  }
  return failure;
}

void GraphTask::Run() {
  // The caller's reference may end with the launch.
  const std::shared_ptr<GraphCore> core = core_.shared_from_this();
  GraphCore::Ready ready{.pool = pool_.get()};
  core->Push(*this, ready);
  if (core->Drive(ready, true)) core->EndOnPool(*ready.pool);
}

std::shared_ptr<Runnable> GraphTask::Resumption() {
  return core_.Entry(*this);
}

std::shared_ptr<Runnable> GraphCore::Entry(GraphTask& task) {
  return {shared_from_this(), &task};
}

// The stream may begin the next launch as soon as it runs.
void GraphCore::EndOnPool(ThreadPool& pool) {
  std::shared_ptr<Runnable> stream = std::exchange(stream_, nullptr);
  if (&pool == home_.get()) return stream->Run();
  home_->Schedule(std::move(stream));
}

bool GraphCore::Drive(Ready& ready, bool is_pool_thread) {
  ScheduleFuzzer* const fuzzer = ready.pool->fuzzer();
  uint32_t run = 0;
  while (GraphTask* const task = Take(ready)) {
    if (fuzzer != nullptr) fuzzer->Pause();
    const bool is_light = task->is_light_;
    if (RunTask(*task, ready)) Finish(task, ready);
    if (ready.is_over) return true;
    ++run;
    // With a task in hand the launch is not over, so the next one does not change run_.
    if (!is_pool_thread || !ready.HasAny()) continue;
    const bool must_end = (fuzzer != nullptr && fuzzer->EndsTurn()) ||
                          ((!is_light || run % kTurnNodes == 0) && ready.pool->HasRival(run_.priority));
    if (must_end) PutBackAll(ready);
  }
  return false;
}

// True: it is finished, and the caller goes on with what comes after it.
bool GraphCore::RunTask(GraphTask& task, Ready& ready) {
  if (task.condition_ != nullptr) return RunCondition(task, ready);
  NodeWork* const work = task.work_.get();
  if (work == nullptr) return true;
  if (!task.has_begun_) {
    if (IsSkipping()) return true;
    // Written before Begin, because another thread may resume the task before Begin returns.
    task.has_begun_ = true;
    if (!work->Begin(run_, task)) return false;
  } else if (!work->Resume(task)) {
    return false;
  }
  task.has_begun_ = false;
  GraphTask* none = nullptr;
  if (work->HasFailed()) failed_.compare_exchange_strong(none, &task, std::memory_order_acq_rel);
  return true;
}

// True: no body runs any more.
bool GraphCore::RunCondition(GraphTask& task, Ready& ready) {
  using Kind = hal::GraphCondition::Kind;
  const GraphTask::Condition& condition = *task.condition_;
  const auto& bodies = condition.bodies;
  const Kind kind = condition.kind;
  const bool was_begun = std::exchange(task.has_begun_, true);
  while (!IsSkipping() && !condition.IsStopped() && (kind == Kind::kWhile || !was_begun)) {
    const int32_t now = *condition.value;
    size_t index = 0;
    if (kind == Kind::kSwitch) {
      index = now < 0 ? bodies.size() : static_cast<size_t>(now);
    } else if (now == 0) {
      index = kind == Kind::kIf ? 1 : bodies.size();
    }
    if (index >= bodies.size()) break;
    if (!bodies[index]->tasks.empty()) {
      BeginPart(*bodies[index], ready);
      return false;
    }
    if (kind != Kind::kWhile) break;
    // An empty body: another node, or the host, changes the value.
    RelaxCore();
  }
  task.has_begun_ = false;
  return true;
}

void GraphCore::BeginPart(GraphPart& part, Ready& ready) {
  for (GraphTask* const task : part.first) Offer(*task, ready);
}

// Another thread may finish the launch after the last access to a counter here.
void GraphCore::Finish(GraphTask* task, Ready& ready) {
  while (true) {
    for (GraphTask* const next : task->successors_) {
      if (next->before_count_ > 1) {
        if (next->unfinished_before_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        next->unfinished_before_.store(next->before_count_, std::memory_order_relaxed);
      }
      Offer(*next, ready);
    }
    if (!task->successors_.empty()) return;
    GraphPart& part = task->part_;
    if (part.last_count > 1) {
      if (part.unfinished.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      part.unfinished.store(part.last_count, std::memory_order_relaxed);
    }
    task = part.condition;
    if (task == nullptr) {
      ready.is_over = true;
      return;
    }
    if (!RunCondition(*task, ready)) return;
  }
}

// The task is ready. It may have finished when this returns.
void GraphCore::Offer(GraphTask& task, Ready& ready) {
  ScheduleFuzzer* const fuzzer = ready.pool->fuzzer();
  const bool is_own = task.pool_.get() == ready.pool;
  if (is_own && !(fuzzer != nullptr && fuzzer->RefusesHelper())) {
    if (task.is_light_) return Push(task, ready);
    if (ready.kept == nullptr) {
      ready.kept = &task;
      return;
    }
  }
  task.SetPriority(run_.priority);
  task.pool_->Schedule(Entry(task));
}

void GraphCore::Push(GraphTask& task, Ready& ready) {
  task.next_ = nullptr;
  (ready.head == nullptr ? ready.head : ready.tail->next_) = &task;
  ready.tail = &task;
}

// A task that is not light does not wait for light ones if another thread can take it.
GraphTask* GraphCore::Take(Ready& ready) {
  if (ready.head == nullptr) return std::exchange(ready.kept, nullptr);
  if (ready.kept != nullptr) {
    GraphTask* const kept = std::exchange(ready.kept, nullptr);
    kept->SetPriority(run_.priority);
    kept->pool_->Schedule(Entry(*kept));
  }
  GraphTask* const task = ready.head;
  ready.head = task->next_;
  return task;
}

// Something as urgent waits for a thread.
void GraphCore::PutBackAll(Ready& ready) {
  while (GraphTask* const task = ready.head != nullptr ? ready.head : std::exchange(ready.kept, nullptr)) {
    if (task == ready.head) ready.head = task->next_;
    task->SetPriority(run_.priority);
    ready.pool->PutBack(Entry(*task));
  }
}

}  // namespace millrace::cpu
