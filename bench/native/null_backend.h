// A device that does nothing, and completes everything at the call: what remains is the work of the channel.
// `on_launch` is called for each launch, on the channel's thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hal/graph.h"
#include "hal/hal.h"

namespace millrace::bench {

inline Status Unsupported() {
  return Status(StatusCode::kUnsupported, "by the null device");
}

class NullMemory final : public hal::Memory {
 public:
  explicit NullMemory(uint64_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::byte* address() const override { return bytes_.data(); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_.size(); }

 private:
  mutable std::vector<std::byte> bytes_;
};

class NullKernel final : public hal::Kernel {
 public:
  [[nodiscard]] const hal::KernelLimits& limits() const override { return limits_; }
  [[nodiscard]] Result<uint64_t> MaxCooperativeBlocks(uint32_t, uint32_t) override { return uint64_t{1}; }

 private:
  const hal::KernelLimits limits_{
      .max_threads_per_block = 1024, .max_dynamic_shared_bytes = 0, .max_cooperative_blocks = 0, .blocks_at_once = {}};
};

class NullModule final : public hal::Module {
 public:
  Result<std::shared_ptr<hal::Kernel>> FindKernel(const std::string&, bool, bool) override {
    return std::shared_ptr<hal::Kernel>(new NullKernel());
  }
  Result<std::unique_ptr<hal::Memory>> FindVariable(const std::string&) override { return Unsupported(); }
};

class NullStream final : public hal::Stream {
 public:
  NullStream(const hal::StreamRequest& request, void (*on_launch)()) : request_(request), on_launch_(on_launch) {}

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest&) override {
    on_launch_();
    return Complete(ticket);
  }
  Status LaunchGraph(hal::Ticket ticket, const hal::GraphLaunchRequest&) override { return Complete(ticket); }
  Status Copy(hal::Ticket ticket, std::byte*, const std::byte*, uint64_t, const hal::HostLeases&) override {
    return Complete(ticket);
  }
  Status CopyPeer(hal::Ticket ticket, const hal::PeerCopy&) override { return Complete(ticket); }
  Status CopyStrided(hal::Ticket ticket, std::byte*, const std::byte*, uint32_t,
                     std::span<const hal::StridedAxis>) override {
    return Complete(ticket);
  }
  Status FillStrided(hal::Ticket ticket, std::byte*, uint32_t, uint64_t, std::span<const hal::StridedAxis>) override {
    return Complete(ticket);
  }
  Status CopyPageable(std::byte*, const std::byte*, uint64_t) override { return {}; }
  Status CopyBatch(hal::Ticket ticket, std::span<const hal::BatchedCopy>) override { return Complete(ticket); }
  Status Fill(hal::Ticket ticket, std::byte*, uint32_t, uint64_t, uint64_t) override { return Complete(ticket); }
  Status Wait(hal::Ticket ticket, hal::Stream&, hal::Ticket) override { return Complete(ticket); }
  Status Record(hal::Ticket ticket, hal::EventHandle&) override { return Complete(ticket); }
  Status WaitEvent(hal::Ticket ticket, hal::EventHandle&) override { return Complete(ticket); }
  Status Nop(hal::Ticket ticket) override { return Complete(ticket); }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(hal::Ticket ticket, uint64_t bytes) override {
    if (const Status status = Complete(ticket); !status.ok()) return status;
    return std::unique_ptr<hal::Memory>(new NullMemory(bytes));
  }
  Status Free(hal::Ticket ticket, std::unique_ptr<hal::Memory>) override { return Complete(ticket); }
  Status Signal() override { return {}; }
  [[nodiscard]] hal::Ticket Completed() const noexcept override {
    return std::atomic_ref(request_.slot->device_word).load(std::memory_order_acquire);
  }
  [[nodiscard]] Result<hal::Ticket> Resolve(hal::Ticket) override { return Completed(); }
  Status Check() override { return {}; }
  [[nodiscard]] uint64_t NativeHandle() const override { return 0; }

 private:
  Status Complete(hal::Ticket ticket) {
    std::atomic_ref(request_.slot->device_word).store(ticket, std::memory_order_release);
    request_.sink->Progress(ticket);
    return {};
  }

  const hal::StreamRequest request_;
  void (*const on_launch_)();
};

class NullDevice final : public hal::Device {
 public:
  explicit NullDevice(void (*on_launch)()) : on_launch_(on_launch) {}
  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool NeedsPolling() const override { return false; }
  Status BindChannelThread() override { return {}; }
  Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override {
    return std::unique_ptr<hal::Stream>(new NullStream(request, on_launch_));
  }
  Result<std::shared_ptr<hal::Module>> LoadModule(std::span<const std::byte>) override {
    return std::shared_ptr<hal::Module>(new NullModule());
  }
  Result<std::unique_ptr<hal::Graph>> BuildGraph(std::vector<hal::GraphNode>) override { return Unsupported(); }
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override {
    return std::unique_ptr<hal::Memory>(new NullMemory(count * sizeof(protocol::FaultSlot)));
  }
  [[nodiscard]] uint64_t FreeBytes() const override { return UINT64_MAX; }
  [[nodiscard]] bool NeedsLockedMemory() const override { return false; }
  Result<std::unique_ptr<hal::EventHandle>> CreateEvent(protocol::EventKind) override { return Unsupported(); }
  Result<double> Elapsed(const hal::EventHandle&, const hal::EventHandle&) override { return Unsupported(); }
  Result<hal::IpcHandle> ExportEvent(hal::EventHandle&) override { return Unsupported(); }
  Result<std::unique_ptr<hal::EventHandle>> OpenEvent(const hal::IpcHandle&) override { return Unsupported(); }
  Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t) override { return Unsupported(); }
  Result<hal::IpcHandle> ExportMemory(const hal::Memory&) override { return Unsupported(); }
  Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle&, uint64_t) override { return Unsupported(); }
  Result<hal::PoolStats> PoolUse() override { return Unsupported(); }
  Status SetReleaseThreshold(uint64_t) override { return {}; }
  Result<uint64_t> ReleaseThreshold() override { return uint64_t{0}; }
  Status Trim(uint64_t) override { return {}; }
  Status ResetHighWater() override { return {}; }
  Result<hal::PeerState> Peer(uint32_t, protocol::PeerWhat) override { return Unsupported(); }
  Status SetPeer(uint32_t, protocol::PeerWhat, bool) override { return {}; }
  Result<protocol::PeerRoute> ProbePeer(hal::Device&) override { return Unsupported(); }
  void Close() override {}

 private:
  hal::DeviceInfo info_;
  void (*const on_launch_)();
};

class NullBackend final : public hal::Backend {
 public:
  explicit NullBackend(void (*on_launch)()) : on_launch_(on_launch) {}
  [[nodiscard]] const char* name() const override { return "null"; }
  [[nodiscard]] hal::BackendReport Enumerate() override { return {}; }
  Result<std::unique_ptr<hal::Device>> Open(uint32_t, std::span<protocol::TimelineSlot>) override {
    return std::unique_ptr<hal::Device>(new NullDevice(on_launch_));
  }

 private:
  void (*const on_launch_)();
};

}  // namespace millrace::bench
