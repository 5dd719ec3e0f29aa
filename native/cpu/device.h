// A CPU device: a thread pool, a memory budget and streams.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpu/memory.h"
#include "cpu/openblas.h"
#include "cpu/stream.h"
#include "cpu/thread_pool.h"
#include "hal/hal.h"

namespace millrace::cpu {

class CpuDevice final : public hal::Device {
 public:
  /// Starts `info.multiprocessors` threads.
  [[nodiscard]] static Result<std::unique_ptr<hal::Device>> Open(hal::DeviceInfo info);
  CpuDevice(hal::DeviceInfo info, std::shared_ptr<ThreadPool> pool, std::shared_ptr<const OpenBlas> openblas = nullptr);
  ~CpuDevice() override { Close(); }

  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  /// Threads of this device report progress to the sink themselves.
  [[nodiscard]] bool NeedsPolling() const override { return false; }
  Status BindChannelThread() override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override;
  [[nodiscard]] Result<std::shared_ptr<hal::Module>> LoadModule(std::span<const std::byte> image) override;
  [[nodiscard]] Result<hal::PlannedCall> LoadPlan(const hal::LibraryPlan& plan) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Graph>> BuildGraph(std::vector<hal::GraphNode> nodes) override;
  /// A CPU device can use any host memory without locking it.
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override;
  [[nodiscard]] uint64_t FreeBytes() const override { return heap_->FreeBytes(); }

  Status LimitMemory(uint64_t bytes) override {
    info_.total_memory_bytes = std::min(info_.total_memory_bytes, bytes);
    heap_->Limit(info_.total_memory_bytes);
    return {};
  }
  Status GuardMemory() override {
    heap_->Guard();
    return {};
  }

  Status Reseed(uint32_t seed) override;
  Status LimitThreads(uint32_t threads) override;
  [[nodiscard]] Result<hal::Division> Divide(std::span<const uint32_t> shares) override;
  Status EndPartition(uint32_t id) override;

  [[nodiscard]] bool NeedsLockedMemory() const override { return false; }

  /// Timestamps of the machine's steady clock. The other kind is for other processes, which cannot use a CPU device.
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> CreateEvent(protocol::EventKind kind) override;
  [[nodiscard]] Result<double> Elapsed(const hal::EventHandle& start, const hal::EventHandle& end) override;
  [[nodiscard]] Result<hal::IpcHandle> ExportEvent(hal::EventHandle&) override { return kOneProcess; }
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> OpenEvent(const hal::IpcHandle&) override {
    return kOneProcess;
  }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t) override { return kOneProcess; }
  [[nodiscard]] Result<hal::IpcHandle> ExportMemory(const hal::Memory&) override { return kOneProcess; }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle&, uint64_t) override {
    return kOneProcess;
  }

  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateArray(const protocol::TextureShape& shape) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> CreateTexture(const hal::TextureRequest& request) override;

  [[nodiscard]] Result<hal::PoolStats> PoolUse() override { return heap_->Use(); }
  Status SetReleaseThreshold(uint64_t bytes) override;
  [[nodiscard]] Result<uint64_t> ReleaseThreshold() override { return heap_->kept_bytes(); }
  Status Trim(uint64_t keep_bytes) override;
  Status ResetHighWater() override;

  /// Every CPU device can use the memory of every other. What was granted is remembered, so that programs behave as on
  /// GPUs.
  [[nodiscard]] Result<hal::PeerState> Peer(uint32_t ordinal, protocol::PeerWhat what) override;
  Status SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) override;
  [[nodiscard]] Result<protocol::PeerRoute> ProbePeer(hal::Device&) override { return protocol::PeerRoute::kDirect; }

  // For nodes of graphs. Thread: any.
  [[nodiscard]] const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  /// Of a partition, or the device's own for 0. kState if the partition is closed.
  [[nodiscard]] Result<std::shared_ptr<ThreadPool>> PoolOf(uint32_t partition);
  [[nodiscard]] const std::shared_ptr<BlockThreads>& block_threads() const { return block_threads_; }
  /// Limits of launches by kernels.
  [[nodiscard]] GridLimits grid_limits() const;

  /// Work that streams of other devices wait for still runs: see cancel.cpp.
  void Cancel() override;
  /// Blocks until the longest kernel ends. A caller that cannot wait leaks the device instead.
  void Close() override;

 private:
  /// Its threads, which run nothing yet, are others from now on.
  Status Restart(std::unique_ptr<ScheduleFuzzer> fuzzer, uint32_t threads);

  static constexpr Status kOneProcess{StatusCode::kUnsupported, "sharing a CPU device's objects with other processes"};

  hal::DeviceInfo info_;
  std::shared_ptr<ThreadPool> pool_;  // Constant since the first stream.
  hal::PartitionTable<const CpuPartition> partitions_;
  const std::shared_ptr<BlockThreads> block_threads_ = std::make_shared<BlockThreads>();
  const std::shared_ptr<Heap> heap_;
  const std::shared_ptr<const OpenBlas> openblas_;  // Null: matrices are multiplied by kernels.
  // Thread: channel. For Cancel and Close.
  std::vector<std::weak_ptr<StreamCore>> streams_;
  std::vector<std::shared_ptr<StreamCore>> given_up_;  // These keep the dropped items alive.
  bool is_given_up_ = false;
};

}  // namespace millrace::cpu
