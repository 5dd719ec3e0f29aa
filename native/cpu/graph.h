// A graph on the CPU: an item for each node, which the threads of the devices' pools run when it is ready.
//
// A thread that finishes a node counts down its successors. It runs the light ones that are ready itself, from a list
// that links the nodes and allocates nothing. Of the others it keeps one, if it has nothing else to run, and schedules
// the rest. So independent nodes run on several threads, and a chain stays on one. Each counter is set for the next
// launch by the thread that counted it down, because the runtime orders the launches of one graph. A launch that fails
// or is stopped passes through all nodes without running them, so the counters stay right.
//
// A condition runs on the thread that reaches it. Its bodies are parts with counters of their own; the thread that
// finishes a body goes on with the condition, so a loop of any length costs no stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpu/block_threads.h"
#include "cpu/graph_work.h"
#include "cpu/thread_pool.h"
#include "hal/graph.h"

namespace millrace::cpu {

class GraphCore;
class CpuGraphNode;

/// The nodes of a graph, or of a condition's body.
struct GraphPart {
  std::vector<CpuGraphNode*> nodes;
  std::vector<CpuGraphNode*> first;     // Those that come after no other.
  uint32_t last_count = 0;              // The number of those that no other comes after.
  std::atomic<uint32_t> unfinished{0};  // Of the last ones.
  CpuGraphNode* condition = nullptr;    // Null: the whole graph.
};

/// One node.
class CpuGraphNode final : public Runnable, public NodeOwner {
 public:
  CpuGraphNode(GraphCore& core, GraphPart& part, std::shared_ptr<ThreadPool> pool, uint32_t index)
      : Runnable(kLeastPriority), core_(core), part_(part), pool_(std::move(pool)), index_(index) {}

  /// On a thread of the node's pool: the node begins, or a part of it that other threads ran has finished.
  void Run() override;
  [[nodiscard]] std::shared_ptr<Runnable> Resumption() override;
  [[nodiscard]] ThreadPool& pool() const override { return *pool_; }

 private:
  friend class GraphCore;
  struct Condition {
    hal::GraphCondition::Kind kind = hal::GraphCondition::Kind::kIf;
    const volatile int32_t* value = nullptr;
    const uint32_t* stop = nullptr;
    std::vector<std::unique_ptr<GraphPart>> bodies;

    [[nodiscard]] bool IsStopped() const {
      return stop != nullptr && std::atomic_ref(*const_cast<uint32_t*>(stop)).load(std::memory_order_acquire) != 0;
    }
  };

  GraphCore& core_;
  GraphPart& part_;
  const std::shared_ptr<ThreadPool> pool_;
  const uint32_t index_;            // In the whole graph: its own, or that of the outermost condition around it.
  std::unique_ptr<NodeWork> work_;  // Null: nothing to do.
  std::unique_ptr<Condition> condition_;
  bool is_light_ = true;
  uint32_t before_count_ = 0;  // The number of nodes that it comes after.
  std::vector<CpuGraphNode*> successors_;

  std::atomic<uint32_t> unfinished_before_{0};
  // Used by the thread that has the node.
  bool has_begun_ = false;
  CpuGraphNode* next_ = nullptr;  // In a thread's list.
};

/// The state of a graph. Its queued launches, and the threads that run it, keep it alive.
class GraphCore : public std::enable_shared_from_this<GraphCore> {
 public:
  GraphCore() = default;
  ~GraphCore();
  GraphCore(const GraphCore&) = delete;
  GraphCore& operator=(const GraphCore&) = delete;
  [[nodiscard]] static Result<std::shared_ptr<GraphCore>> Build(const std::vector<hal::GraphNode>& nodes);

  /// Begins a launch, when the last one is over. True: it is finished. False: the thread that finishes it runs `stream`
  /// on `launcher`, the stream's pool. Thread: of that pool; any if the graph is light.
  [[nodiscard]] bool Begin(const NodeRun& run, std::span<const hal::GraphPatch> patches,
                           std::shared_ptr<Runnable> stream, std::shared_ptr<ThreadPool> launcher, bool is_pool_thread);
  /// Why the launch failed, once it is finished. Valid until the next one begins.
  [[nodiscard]] std::optional<hal::KernelFailure> Failure() const;
  /// Whether a thread with other work may run the whole graph itself.
  [[nodiscard]] bool IsLight() const { return is_light_; }

 private:
  friend class CpuGraphNode;
  /// The nodes that a thread runs next.
  struct Ready {
    ThreadPool* pool;  // The thread's.
    CpuGraphNode* head = nullptr;
    CpuGraphNode* tail = nullptr;
    CpuGraphNode* kept = nullptr;  // One that is not light.
    bool is_over = false;          // The thread finished the launch.
    [[nodiscard]] bool HasAny() const { return head != nullptr || kept != nullptr; }
  };

  Status Add(GraphPart& part, const std::vector<hal::GraphNode>& nodes, uint32_t outer);
  Status GrowThreads(const CpuDevice& device, const hal::Dim3& grid);
  Status AddWork(CpuGraphNode& node, const hal::GraphNode& source);
  /// True for the one thread that finished the launch, which no longer uses it then.
  [[nodiscard]] bool Drive(Ready& ready, bool is_pool_thread);
  [[nodiscard]] bool RunNode(CpuGraphNode& node, Ready& ready);
  [[nodiscard]] bool RunCondition(CpuGraphNode& node, Ready& ready);
  void BeginPart(GraphPart& part, Ready& ready);
  void Finish(CpuGraphNode* node, Ready& ready);
  void Offer(CpuGraphNode& node, Ready& ready);
  void Push(CpuGraphNode& node, Ready& ready);
  [[nodiscard]] CpuGraphNode* Take(Ready& ready);
  void PutBackAll(Ready& ready);
  void EndOnPool(ThreadPool& pool);
  [[nodiscard]] std::shared_ptr<Runnable> Entry(CpuGraphNode& node);
  [[nodiscard]] bool IsSkipping() const {
    return failed_.load(std::memory_order_relaxed) != nullptr || run_.cancellation.IsRequested();
  }

  std::deque<CpuGraphNode> nodes_;
  GraphPart whole_;
  std::vector<std::shared_ptr<hal::Kernel>> kernels_;  // Kept loaded.
  bool is_light_ = false;
  struct Together {
    std::shared_ptr<BlockThreads> threads;
    uint32_t most;  // Blocks of the largest cooperative node of a device.
  };
  std::vector<Together> together_;

  // Of the running launch; written before its first node begins.
  NodeRun run_;
  std::shared_ptr<Runnable> stream_;
  std::shared_ptr<ThreadPool> launcher_;
  std::atomic<CpuGraphNode*> failed_{nullptr};  // The first whose kernel had to stop.
};

/// A queued launch.
struct GraphLaunch {
  GraphLaunch(std::shared_ptr<GraphCore> launched, const hal::GraphLaunchRequest& request)
      : graph(std::move(launched)), patches(request.patches.begin(), request.patches.end()) {}

  const std::shared_ptr<GraphCore> graph;
  const std::vector<hal::GraphPatch> patches;
  bool has_begun = false;  // Used by the stream's driver.
};

class CpuGraph final : public hal::Graph {
 public:
  [[nodiscard]] static Result<std::unique_ptr<hal::Graph>> Build(const std::vector<hal::GraphNode>& nodes);
  explicit CpuGraph(std::shared_ptr<GraphCore> core) : core_(std::move(core)) {}
  [[nodiscard]] const std::shared_ptr<GraphCore>& core() const { return core_; }

 private:
  const std::shared_ptr<GraphCore> core_;
};

}  // namespace millrace::cpu
