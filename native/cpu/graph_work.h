// The work of one node of a graph on a CPU device: prepared when the graph is built, and run at each launch without
// allocation. Exceptions are kernels that launch kernels, since their launches need memory anyway, and large fills
// whose parts each launch replaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/cancellation.h"
#include "cpu/thread_pool.h"
#include "hal/graph.h"
#include "hal/hal.h"

namespace millrace::cpu {

class CpuDevice;

/// What a node needs to know of the launch that runs it.
struct NodeRun {
  Cancellation cancellation;
  int32_t priority = 0;
};

/// The node that a work belongs to.
class NodeOwner {
 public:
  /// Calls NodeWork::Resume on a thread of its pool.
  [[nodiscard]] virtual std::shared_ptr<Runnable> Resumption() = 0;
  [[nodiscard]] virtual ThreadPool& pool() const = 0;

 protected:
  ~NodeOwner() = default;
};

/// Thread: one at a time, unless stated otherwise.
class NodeWork {
 public:
  NodeWork() = default;
  virtual ~NodeWork() = default;
  NodeWork(const NodeWork&) = delete;
  NodeWork& operator=(const NodeWork&) = delete;

  /// Runs it on a thread of the owner's pool; light work on any thread. True: it is finished. False: the thread that
  /// finishes it runs the owner's Resumption, perhaps already.
  [[nodiscard]] virtual bool Begin(const NodeRun& run, NodeOwner& owner) = 0;
  /// As Begin, for work that a Resumption continues.
  [[nodiscard]] virtual bool Resume(NodeOwner&) { return true; }
  /// Whether the thread that makes the node ready runs it, because a wake of another thread would take longer. Thread:
  /// any.
  [[nodiscard]] virtual bool IsLight() const = 0;
  /// Replaces a value, as hal::GraphPatch says, before the launch's first node begins.
  virtual void SetParam(uint32_t, uint64_t) {}
  /// Whether the kernel had to stop, and why.
  [[nodiscard]] virtual bool HasFailed() const { return false; }
  [[nodiscard]] virtual std::optional<hal::KernelFailure> Failure() const { return std::nullopt; }
};

/// Whether each block of the node has a thread.
[[nodiscard]] bool IsResident(const hal::GraphKernel& node);
/// The work of a node of this pool that is not a condition; null if it does nothing. kLaunchFailed: the kernel takes a
/// different number of parameters. kUnsupported: a cooperative kernel that launches kernels.
[[nodiscard]] Result<std::unique_ptr<NodeWork>> MakeNodeWork(const hal::GraphWork& work, const CpuDevice& device,
                                                             std::shared_ptr<ThreadPool> pool);

}  // namespace millrace::cpu
