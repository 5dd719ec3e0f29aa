#include "cpu/graph_work.h"

#include <utility>
#include <vector>

#include "cpu/block_threads.h"
#include "cpu/device.h"
#include "cpu/dynamic_parallelism.h"
#include "cpu/event_handle.h"
#include "cpu/launch_item.h"
#include "cpu/module.h"
#include "cpu/parallel_copy.h"
#include "cpu/strided.h"

namespace millrace::cpu {
namespace {

using Made = Result<std::unique_ptr<NodeWork>>;

class FillNode final : public NodeWork {
 public:
  explicit FillNode(const Fill& fill) : fill_(fill) {}
  bool Begin(const NodeRun&, NodeOwner&) override {
    RunFill(fill_);
    return true;
  }
  bool IsLight() const override { return fill_.count * fill_.element_bytes <= kLightBytes; }

 private:
  const Fill fill_;
};

/// A fill whose parts each launch may replace.
class PatchedFillNode final : public NodeWork {
 public:
  explicit PatchedFillNode(const hal::GraphFill& fill) : work_(fill) {}
  bool Begin(const NodeRun& run, NodeOwner& owner) override {
    const auto& fill = std::get<hal::GraphFill>(work_);
    const Fill now{fill.dst, fill.element_bytes, fill.pattern, fill.count};
    if (now.count * now.element_bytes < kSweepBytes) {
      RunFill(now);
      return true;
    }
    sweep_ = std::make_shared<ParallelFill>(now, run.priority);
    sweep_->Prepare(run.cancellation, run.priority);
    // Another thread may finish the fill, and the node begin again, before this call ends.
    const std::shared_ptr<ParallelFill> sweep = sweep_;
    return sweep->RunOn(owner.pool(), owner.Resumption());
  }
  bool IsLight() const override { return false; }
  void SetParam(uint32_t param, uint64_t value) override { hal::SetParam(work_, param, value); }

 private:
  hal::GraphWork work_;
  std::shared_ptr<ParallelFill> sweep_;  // Of the last run.
};

void Patch(HostCopy& copy, uint32_t param, uint64_t value) {
  if (param == hal::GraphPatch::kReport) return copy.SetReport(reinterpret_cast<protocol::FaultSlot*>(value));
  if (param == hal::GraphPatch::kDst) return copy.SetDst(reinterpret_cast<std::byte*>(value));
  copy.SetSrc(reinterpret_cast<const std::byte*>(value));
}

class CopyNode final : public NodeWork {
 public:
  CopyNode(const Copy& copy, const hal::HostLeases& host) : copy_(copy, host) {}
  bool Begin(const NodeRun&, NodeOwner&) override {
    copy_.Run();
    return true;
  }
  bool IsLight() const override { return copy_.bytes() <= kLightBytes; }
  void SetParam(uint32_t param, uint64_t value) override { Patch(copy_, param, value); }

 private:
  HostCopy copy_;
};

class RecordNode final : public NodeWork {
 public:
  explicit RecordNode(std::shared_ptr<Timestamp> stamp) : stamp_(std::move(stamp)) {}
  bool Begin(const NodeRun&, NodeOwner&) override {
    stamp_->Take();
    return true;
  }
  bool IsLight() const override { return true; }
  void SetParam(uint32_t, uint64_t value) override {
    stamp_ = static_cast<CpuEventHandle*>(reinterpret_cast<hal::EventHandle*>(value))->stamp();
  }

 private:
  std::shared_ptr<Timestamp> stamp_;
};

/// A large or strided copy or fill.
class SweepNode final : public NodeWork {
 public:
  explicit SweepNode(std::shared_ptr<ParallelItem> sweep, ParallelCopy* copy = nullptr)
      : sweep_(std::move(sweep)), copy_(copy) {}
  bool Begin(const NodeRun& run, NodeOwner& owner) override {
    sweep_->Prepare(run.cancellation, run.priority);
    if (!IsLight()) return sweep_->RunOn(owner.pool(), owner.Resumption());
    sweep_->RunHere();
    return true;
  }
  bool IsLight() const override { return sweep_->IsLight(); }
  void SetParam(uint32_t param, uint64_t value) override {
    if (copy_ != nullptr) Patch(copy_->copy(), param, value);
  }

 private:
  const std::shared_ptr<ParallelItem> sweep_;
  ParallelCopy* const copy_;  // `sweep_`, if it is one.
};

class GridNode final : public NodeWork {
 public:
  explicit GridNode(const hal::LaunchRequest& request) : grid_(std::make_shared<LaunchItem>(request, kLeastPriority)) {}
  bool Begin(const NodeRun& run, NodeOwner& owner) override {
    grid_->Prepare(run.cancellation, run.priority);
    if (!grid_->IsOneBlock() && !grid_->IsLight()) return grid_->RunOn(owner.pool(), owner.Resumption());
    grid_->RunHere();
    return true;
  }
  bool IsLight() const override { return grid_->IsLight(); }
  void SetParam(uint32_t param, uint64_t value) override { grid_->SetParam(param, value); }
  bool HasFailed() const override { return grid_->HasFailed(); }
  std::optional<hal::KernelFailure> Failure() const override { return grid_->Failure(); }

 private:
  const std::shared_ptr<LaunchItem> grid_;
};

class CooperativeNode final : public NodeWork {
 public:
  CooperativeNode(const hal::LaunchRequest& request, const CpuDevice& device)
      : grid_(std::make_shared<CooperativeGrid>(request, device.pool()->fuzzer())), threads_(device.block_threads()) {}

  bool Begin(const NodeRun& run, NodeOwner& owner) override {
    grid_->Prepare();
    grid_->SetCancellation(run.cancellation);
    threads_->Run(grid_, owner.pool(), owner.Resumption());
    return false;
  }
  bool IsLight() const override { return false; }
  void SetParam(uint32_t param, uint64_t value) override { grid_->SetParam(param, value); }
  bool HasFailed() const override { return grid_->Failure().has_value(); }
  std::optional<hal::KernelFailure> Failure() const override { return grid_->Failure(); }

 private:
  const std::shared_ptr<CooperativeGrid> grid_;
  const std::shared_ptr<BlockThreads> threads_;
};

/// A kernel that launches kernels. Each run makes a launch tree, which its grids replace and outlive.
class LaunchTreeNode final : public NodeWork {
 public:
  LaunchTreeNode(const hal::GraphKernel& node, const CpuDevice& device, std::shared_ptr<ThreadPool> pool)
      : kernel_(node.kernel),
        request_{},
        pool_(std::move(pool)),
        limits_(device.grid_limits()),
        values_(node.params),
        wide_(node.wide),
        params_(hal::ParamPointers(values_, wide_)) {
    request_.kernel = kernel_.get();
    request_.grid = node.grid;
    request_.block = node.block;
    request_.shared_bytes = node.shared_bytes;
    request_.params = params_;
    request_.kernel_id = node.kernel_id;
    request_.wide = wide_;
  }
  bool Begin(const NodeRun& run, NodeOwner& owner) override {
    const auto hidden = std::span(values_).last(2);
    auto* slot = reinterpret_cast<protocol::FaultSlot*>(hidden[0]);
    auto* fault_word = reinterpret_cast<uint32_t*>(hidden[1]);
    grid_ = std::make_shared<LaunchTreeGrid>(
        request_, std::make_shared<LaunchTree>(pool_, limits_, slot, fault_word, run.priority));
    grid_->SetCancellation(run.cancellation);
    // Another thread may finish the grid, and the node begin again, before this call ends.
    const std::shared_ptr<LaunchTreeGrid> grid = grid_;
    return grid->RunOn(owner.pool(), owner.Resumption()) && Resume(owner);
  }
  bool Resume(NodeOwner& owner) override { return grid_->IsOver(owner.Resumption()); }
  bool IsLight() const override { return false; }
  void SetParam(uint32_t param, uint64_t value) override { values_[param] = value; }
  bool HasFailed() const override { return grid_->HasFailed(); }
  std::optional<hal::KernelFailure> Failure() const override { return grid_->Failure(); }

 private:
  const std::shared_ptr<hal::Kernel> kernel_;
  hal::LaunchRequest request_;
  const std::shared_ptr<ThreadPool> pool_;
  const GridLimits limits_;
  std::vector<uint64_t> values_;
  const std::vector<hal::WideParam> wide_;
  std::vector<void*> params_;
  std::shared_ptr<LaunchTreeGrid> grid_;  // Of the last run.
};

Made MakeKernel(const hal::GraphKernel& node, const CpuDevice& device, std::shared_ptr<ThreadPool> pool) {
  const auto& kernel = static_cast<const CpuKernel&>(*node.kernel);
  const std::vector<void*> params = hal::ParamPointers(node.params, node.wide);
  MR_TRY(kernel.CheckParams(params.size(), node.wide));
  if (uint64_t{node.grid.x} * node.grid.y * node.grid.z == 0) return std::unique_ptr<NodeWork>();
  if (kernel.is_launching()) {
    if (node.is_cooperative) return Status(StatusCode::kUnsupported, "launching kernels from a cooperative launch");
    return std::unique_ptr<NodeWork>(std::make_unique<LaunchTreeNode>(node, device, std::move(pool)));
  }
  const hal::LaunchRequest request{.kernel = node.kernel.get(),
                                   .grid = node.grid,
                                   .block = node.block,
                                   .shared_bytes = node.shared_bytes,
                                   .params = params,
                                   .is_cooperative = node.is_cooperative,
                                   .kernel_id = node.kernel_id,
                                   .wide = node.wide};
  if (IsResident(node)) return std::unique_ptr<NodeWork>(std::make_unique<CooperativeNode>(request, device));
  return std::unique_ptr<NodeWork>(std::make_unique<GridNode>(request));
}

Made MakeCopy(const Copy& copy, const hal::HostLeases& host) {
  if (copy.bytes == 0) return std::unique_ptr<NodeWork>();
  if (copy.bytes < kSweepBytes) return std::unique_ptr<NodeWork>(std::make_unique<CopyNode>(copy, host));
  auto sweep = std::make_shared<ParallelCopy>(HostCopy(copy, host), kLeastPriority);
  ParallelCopy* const own = sweep.get();
  return std::unique_ptr<NodeWork>(std::make_unique<SweepNode>(std::move(sweep), own));
}

Made MakeFill(const Fill& fill) {
  if (fill.count == 0) return std::unique_ptr<NodeWork>();
  if (fill.count * fill.element_bytes < kSweepBytes) {
    return std::unique_ptr<NodeWork>(std::make_unique<FillNode>(fill));
  }
  return std::unique_ptr<NodeWork>(std::make_unique<SweepNode>(std::make_shared<ParallelFill>(fill, kLeastPriority)));
}

Made MakeStrided(const hal::GraphStrided& node) {
  const bool is_fill = node.src == nullptr;
  const StridedShape shape(node.dst, node.src, node.element_bytes, node.axes);
  if (shape.IsRun() && is_fill) {
    return MakeFill({shape.dst(), node.element_bytes, node.pattern, shape.element_count()});
  }
  if (shape.IsRun()) return MakeCopy({shape.dst(), shape.src(), shape.element_count() * node.element_bytes}, {});
  const std::optional<uint64_t> pattern = is_fill ? std::optional(node.pattern) : std::nullopt;
  return std::unique_ptr<NodeWork>(
      std::make_unique<SweepNode>(std::make_shared<StridedSweep>(shape, pattern, kLeastPriority)));
}

}  // namespace

bool IsResident(const hal::GraphKernel& node) {
  return node.is_cooperative || static_cast<const CpuKernel&>(*node.kernel).NeedsResident(node.grid);
}

Result<std::unique_ptr<NodeWork>> MakeNodeWork(const hal::GraphWork& work, const CpuDevice& device,
                                               std::shared_ptr<ThreadPool> pool) {
  if (const auto* kernel = std::get_if<hal::GraphKernel>(&work)) return MakeKernel(*kernel, device, std::move(pool));
  if (const auto* copy = std::get_if<hal::GraphCopy>(&work)) {
    return MakeCopy({copy->dst, copy->src, copy->bytes}, copy->host);
  }
  if (const auto* peer = std::get_if<hal::GraphPeerCopy>(&work)) {
    return MakeCopy({peer->copy.dst, peer->copy.src, peer->copy.bytes}, {});
  }
  if (const auto* fill = std::get_if<hal::GraphFill>(&work)) {
    if (fill->is_patched) return std::unique_ptr<NodeWork>(std::make_unique<PatchedFillNode>(*fill));
    return MakeFill({fill->dst, fill->element_bytes, fill->pattern, fill->count});
  }
  if (const auto* strided = std::get_if<hal::GraphStrided>(&work)) return MakeStrided(*strided);
  if (const auto* record = std::get_if<hal::GraphRecord>(&work)) {
    return std::unique_ptr<NodeWork>(
        std::make_unique<RecordNode>(static_cast<const CpuEventHandle&>(*record->event).stamp()));
  }
  return std::unique_ptr<NodeWork>();
}

}  // namespace millrace::cpu
