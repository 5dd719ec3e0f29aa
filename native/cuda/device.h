// An open CUDA device: its context, the timeline that it writes, and what its streams share.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "cuda/ending_devices.h"
#include "cuda/event_handle.h"
#include "cuda/matmul.h"
#include "cuda/memory_pool.h"
#include "cuda/partitions.h"
#include "cuda/peers.h"
#include "cuda/stream.h"
#include "hal/hal.h"

namespace millrace::cuda {

class Device final : public hal::Device {
 public:
  /// Thread: control. Takes about 0.1 s per device, mostly in the driver.
  static Result<std::unique_ptr<hal::Device>> Open(hal::DeviceInfo info, std::span<protocol::TimelineSlot> timeline);
  ~Device() override { Close(); }

  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool NeedsPolling() const override { return true; }
  Status BindChannelThread() override;
  [[nodiscard]] Result<uint64_t> EnterContext() override;
  [[nodiscard]] Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override;
  [[nodiscard]] Result<std::shared_ptr<hal::Module>> LoadModule(std::span<const std::byte> image) override;
  [[nodiscard]] Result<hal::PlannedCall> LoadPlan(const hal::LibraryPlan& plan) override;
  [[nodiscard]] Result<std::unique_ptr<hal::CallCapture>> BeginCapture() override;
  [[nodiscard]] Result<std::unique_ptr<hal::Graph>> BuildGraph(std::vector<hal::GraphNode> nodes) override;
  [[nodiscard]] Result<hal::Division> Divide(std::span<const uint32_t> shares) override;
  /// For nodes of graphs. Null for 0; kState if it is closed. Thread: any.
  [[nodiscard]] Result<std::shared_ptr<const Partition>> PartitionOf(uint32_t id) { return partitions_.Find(id); }
  Status EndPartition(uint32_t id) override { return partitions_.Take(id).status(); }
  Status RegisterHost(std::span<std::byte> range) override;
  Status UnregisterHost(std::span<std::byte> range) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override;
  [[nodiscard]] uint64_t FreeBytes() const override;

  Status AlignClocks() override { return support_.clock->Align(); }
  [[nodiscard]] bool NeedsLockedMemory() const override { return true; }
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> CreateEvent(protocol::EventKind kind) override;
  [[nodiscard]] Result<double> Elapsed(const hal::EventHandle& start, const hal::EventHandle& end) override;
  [[nodiscard]] Result<hal::IpcHandle> ExportEvent(hal::EventHandle& event_handle) override;
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> OpenEvent(const hal::IpcHandle& handle) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t bytes) override;
  [[nodiscard]] Result<hal::IpcHandle> ExportMemory(const hal::Memory& memory) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle& handle, uint64_t bytes) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateArray(const protocol::TextureShape& shape) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> CreateTexture(const hal::TextureRequest& request) override;
  [[nodiscard]] uint64_t KeptBytes() const override { return support_.reaper->Bytes(); }
  void GiveBackKept() override { support_.reaper->GiveBack(0); }
  [[nodiscard]] Result<hal::PoolStats> PoolUse() override;
  Status SetReleaseThreshold(uint64_t bytes) override { return pool_.SetReleaseThreshold(bytes); }
  [[nodiscard]] Result<uint64_t> ReleaseThreshold() override { return pool_.ReleaseThreshold(); }
  Status Trim(uint64_t keep_bytes) override;
  Status ResetHighWater() override;
  [[nodiscard]] Result<hal::PeerState> Peer(uint32_t ordinal, protocol::PeerWhat what) override;
  Status SetPeer(uint32_t ordinal, protocol::PeerWhat what, bool is_granted) override;
  [[nodiscard]] Result<protocol::PeerRoute> ProbePeer(hal::Device& other) override;
  /// The driver cannot stop a kernel; this only notes that the device is about to end.
  void Cancel() override { EndingDevices::Add(info_.ordinal, this); }
  void Close() override;

  /// Empty after Close. Thread: any.
  [[nodiscard]] const BuiltIns& built_ins() const { return support_.built_ins; }
  /// Null after Close. Thread: any.
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }
  /// Thread: any, while the device is open.
  [[nodiscard]] PeerEnd End() const { return {context_, pool_.handle()}; }

 private:
  Device(hal::DeviceInfo info, std::span<protocol::TimelineSlot> timeline, std::shared_ptr<Context> context)
      : info_(std::move(info)), timeline_(timeline), context_(std::move(context)) {}

  /// Reads properties that need a context, and maps the timeline for the device. With the context current.
  Status Prepare();
  /// Calls `allocate` again after unused memory was returned to the driver. Thread: blocking calls.
  Result<std::unique_ptr<hal::Memory>> WithRoom(const std::function<Result<std::unique_ptr<Memory>>()>& allocate);
  [[nodiscard]] Result<int> Attribute(CUdevice_attribute attribute);

  hal::DeviceInfo info_;
  const std::span<protocol::TimelineSlot> timeline_;
  std::shared_ptr<Context> context_;  // Null once closed.
  StreamSupport support_;
  MemoryPool pool_;
  Partitions partitions_;
  std::shared_ptr<TimedEvents> timed_events_;
  std::shared_ptr<CublasLt> cublaslt_;  // Thread: control. Null until a plan needs it.
  CUdeviceptr timeline_address_ = 0;

  std::mutex mutex_;
  std::vector<std::span<std::byte>> host_ranges_;  // Guarded by mutex_. The timeline is first.
};

}  // namespace millrace::cuda
