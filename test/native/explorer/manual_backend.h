// A minimal backend whose work completes when a thread of the scenario says so.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "hal/graph.h"
#include "hal/hal.h"
#include "recording_memory.h"

namespace explorer {

using namespace millrace;  // NOLINT: the scenarios speak of little else

/// Properties of its devices. Set before one is opened.
struct Manner {
  /// Like a GPU: work ends with a word that the device writes, without a notification.
  bool is_polled = false;
  bool completes_at_once = true;
};

class ManualStream final : public hal::Stream {
 public:
  ManualStream(const Manner& manner, const hal::StreamRequest& request)
      : manner_(manner), slot_(request.slot), sink_(request.sink) {}

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest&) override { return Take(ticket); }
  Status LaunchGraph(hal::Ticket ticket, const hal::GraphLaunchRequest&) override { return Take(ticket); }
  Status Copy(hal::Ticket ticket, std::byte*, const std::byte*, uint64_t, const hal::HostLeases&) override {
    return Take(ticket);
  }
  Status CopyPeer(hal::Ticket ticket, const hal::PeerCopy&) override { return Take(ticket); }
  bool HasStaging(uint64_t) const override { return true; }
  Status MakeStaging(uint64_t) override { return {}; }
  Status CopyStrided(hal::Ticket ticket, std::byte*, const std::byte*, uint32_t,
                     std::span<const hal::StridedAxis>) override {
    return Take(ticket);
  }
  Status FillStrided(hal::Ticket ticket, std::byte*, uint32_t, uint64_t, std::span<const hal::StridedAxis>) override {
    return Take(ticket);
  }
  Status CopyPageable(std::byte*, const std::byte*, uint64_t) override {
    Step("copies", this);
    return {};
  }
  Status CopyBatch(hal::Ticket ticket, std::span<const hal::BatchedCopy>) override { return Take(ticket); }
  Status Fill(hal::Ticket ticket, std::byte*, uint32_t, uint64_t, uint64_t) override { return Take(ticket); }
  Status Wait(hal::Ticket ticket, hal::Stream&, hal::Ticket) override { return Take(ticket); }
  Status Record(hal::Ticket ticket, hal::EventHandle&) override { return Take(ticket); }
  Status WaitEvent(hal::Ticket ticket, hal::EventHandle&) override { return Take(ticket); }
  Status Nop(hal::Ticket ticket) override { return Take(ticket); }
  Result<std::unique_ptr<hal::Memory>> Allocate(hal::Ticket ticket, uint64_t bytes) override {
    MR_TRY(Take(ticket));
    return std::unique_ptr<hal::Memory>(new testing::RecordingMemory(bytes));
  }
  Status Free(hal::Ticket ticket, std::unique_ptr<hal::Memory>) override { return Take(ticket); }
  Status Signal() override { return {}; }
  hal::Ticket Completed() const noexcept override { return Load(&slot_->device_word, sizeof(slot_->device_word)); }
  Result<hal::Ticket> Resolve(hal::Ticket) override { return Completed(); }
  Status Check() override { return {}; }
  uint64_t NativeHandle() const override { return 1; }

  /// The last submitted ticket; 0 before.
  [[nodiscard]] hal::Ticket taken() const { return taken_.load(); }
  /// The device completes everything up to this ticket.
  void Complete(hal::Ticket ticket) {
    std::atomic_ref(slot_->device_word).store(ticket, std::memory_order_release);
    if (!manner_.is_polled) sink_->Progress(ticket);
  }

 private:
  Status Take(hal::Ticket ticket) {
    taken_.store(ticket, std::memory_order_release);
    if (manner_.completes_at_once) Complete(ticket);
    return {};
  }

  const Manner& manner_;
  protocol::TimelineSlot* const slot_;
  hal::ProgressSink* const sink_;
  std::atomic<hal::Ticket> taken_{0};
};

class ManualDevice final : public hal::Device {
 public:
  explicit ManualDevice(const Manner& manner) : manner_(manner) {}
  const hal::DeviceInfo& info() const override { return info_; }
  bool NeedsPolling() const override { return manner_.is_polled; }
  Status BindChannelThread() override { return {}; }
  Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override {
    auto stream = std::make_unique<ManualStream>(manner_, request);
    streams.push_back(stream.get());
    return std::unique_ptr<hal::Stream>(std::move(stream));
  }
  Result<std::shared_ptr<hal::Module>> LoadModule(std::span<const std::byte>) override { return kNone; }
  Result<std::unique_ptr<hal::Graph>> BuildGraph(std::vector<hal::GraphNode>) override { return kNone; }
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override {
    return std::unique_ptr<hal::Memory>(new testing::RecordingMemory(count * sizeof(protocol::FaultSlot)));
  }
  uint64_t FreeBytes() const override { return 1 << 30; }
  bool NeedsLockedMemory() const override { return true; }
  Result<std::unique_ptr<hal::EventHandle>> CreateEvent(protocol::EventKind) override { return kNone; }
  Result<double> Elapsed(const hal::EventHandle&, const hal::EventHandle&) override { return kNone; }
  Result<hal::IpcHandle> ExportEvent(hal::EventHandle&) override { return kNone; }
  Result<std::unique_ptr<hal::EventHandle>> OpenEvent(const hal::IpcHandle&) override { return kNone; }
  Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t) override { return kNone; }
  Result<hal::IpcHandle> ExportMemory(const hal::Memory&) override { return kNone; }
  Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle&, uint64_t) override { return kNone; }
  uint64_t KeptBytes() const override { return 0; }
  void GiveBackKept() override {}
  Result<hal::PoolStats> PoolUse() override { return kNone; }
  Status SetReleaseThreshold(uint64_t) override { return {}; }
  Result<uint64_t> ReleaseThreshold() override { return kNone; }
  Status Trim(uint64_t) override { return {}; }
  Status ResetHighWater() override { return {}; }
  Result<hal::PeerState> Peer(uint32_t, protocol::PeerWhat) override { return kNone; }
  Status SetPeer(uint32_t, protocol::PeerWhat, bool) override { return {}; }
  Result<protocol::PeerRoute> ProbePeer(hal::Device&) override { return kNone; }
  void Close() override {}

  std::vector<ManualStream*> streams;  // In the order they were made.

 private:
  static constexpr Status kNone{StatusCode::kUnsupported, "no scenario needs it"};
  const Manner& manner_;
  hal::DeviceInfo info_;
};

class ManualBackend final : public hal::Backend {
 public:
  explicit ManualBackend(const Manner& manner) : manner(manner) {}
  const char* name() const override { return "manual"; }
  hal::BackendReport Enumerate() override { return {}; }
  Result<std::unique_ptr<hal::Device>> Open(uint32_t, std::span<protocol::TimelineSlot>) override {
    auto device = std::make_unique<ManualDevice>(manner);
    devices.push_back(device.get());
    return std::unique_ptr<hal::Device>(std::move(device));
  }
  Manner manner;
  std::vector<ManualDevice*> devices;
};

}  // namespace explorer
