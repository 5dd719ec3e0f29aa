// A driver's graph in its two forms, which its owner ends, or a library that it has calls of and that leaves before.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "cuda/context.h"

namespace millrace::cuda {

class ExecutableGraph {
 public:
  explicit ExecutableGraph(std::shared_ptr<Context> home) : home_(std::move(home)) {}
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;

  /// While one exists, nobody ends the forms. Needed only where a library may.
  class Use {
   public:
    explicit Use(ExecutableGraph& graph) : graph_(graph) { graph_.mutex_.lock(); }
    ~Use() {
      graph_.mutex_.unlock();
      if (graph_.is_over_) graph_.End();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    ExecutableGraph& graph_;
  };

  /// Gives the forms back: now, or when their use has ended. The driver keeps them for launches in flight. Thread: any.
  void End();

  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;

 private:
  const std::shared_ptr<Context> home_;
  std::mutex mutex_;
  std::atomic<bool> is_over_{false};
};

}  // namespace millrace::cuda
