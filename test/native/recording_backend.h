// A backend that only logs its calls, and completes work when the test says so. Tests of the runtime's waits, parks and
// failures need no device and are deterministic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hal/graph.h"
#include "hal/hal.h"
#include "recording_controls.h"
#include "recording_memory.h"
#include "recording_module.h"

namespace millrace::testing {

class RecordingBackend;

/// Its timestamp is the number of events recorded on all devices.
class RecordingEventHandle final : public hal::EventHandle {
 public:
  RecordingEventHandle(BackendControls& controls, protocol::EventKind kind) : kind(kind), controls_(controls) {
    controls_.live_events.fetch_add(1);
  }
  ~RecordingEventHandle() override { controls_.live_events.fetch_sub(1); }

  const protocol::EventKind kind;
  uint64_t stamp = 0;

 private:
  BackendControls& controls_;
};

inline std::string Show(std::span<const hal::StridedAxis> axes) {
  std::string text;
  for (const hal::StridedAxis& axis : axes) {
    text += " " + std::to_string(axis.extent) + ":" + std::to_string(axis.dst_stride) + ":" +
            std::to_string(axis.src_stride);
  }
  return text;
}

/// Logs its destruction.
class RecordingGraph final : public hal::Graph {
 public:
  RecordingGraph(BackendControls& controls, std::vector<hal::GraphNode> nodes)
      : controls_(controls), nodes_(std::move(nodes)) {}
  ~RecordingGraph() override { controls_.log.Add("drops a graph of " + std::to_string(nodes_.size())); }
  [[nodiscard]] const std::vector<hal::GraphNode>& nodes() const { return nodes_; }

 private:
  BackendControls& controls_;
  const std::vector<hal::GraphNode> nodes_;  // Keeps what they keep.
};

/// The event that the patch gives to a node; null if it patches something else.
inline RecordingEventHandle* RecordedBy(hal::Graph* graph, const hal::GraphPatch& patch) {
  if (graph == nullptr) return nullptr;
  const hal::GraphNode& node = static_cast<RecordingGraph*>(graph)->nodes()[patch.node];
  if (!std::holds_alternative<hal::GraphRecord>(node.work)) return nullptr;
  return static_cast<RecordingEventHandle*>(reinterpret_cast<hal::EventHandle*>(patch.value));
}

class RecordingStream final : public hal::Stream {
 public:
  RecordingStream(BackendControls& controls, std::string name, const hal::StreamRequest& request)
      : controls_(controls), name_(std::move(name)), slot_(request.slot), sink_(request.sink) {
    if (request.foreign) handle_ = *request.foreign;
  }
  ~RecordingStream() override {
    const std::lock_guard telling(telling_);
    controls_.log.Add("ends " + name_);
  }

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest& request) override {
    if (controls_.refuse_launches.load() > 0) {
      controls_.refuse_launches.fetch_sub(1);
      return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    }
    values_.clear();
    for (const auto& [index, bytes] : request.wide) {
      std::memcpy(values_.emplace_back((bytes + 7) / 8).data(), request.params[index], bytes);
    }
    return Take(ticket, request.is_cooperative ? "cooperative launch" : "launch");
  }
  Status LaunchGraph(hal::Ticket ticket, const hal::GraphLaunchRequest& request) override {
    if (controls_.refuse_graphs.load() > 0) {
      controls_.refuse_graphs.fetch_sub(1);
      return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    }
    std::string text = request.graph == nullptr ? "no graph" : "graph";
    size_t events = 0;
    for (const hal::GraphPatch& patch : request.patches) {
      if (auto* const event_handle = RecordedBy(request.graph, patch)) {
        event_handle->stamp = controls_.clock.fetch_add(1);
        ++events;
        continue;
      }
      text += " " + std::to_string(patch.node) + "." + std::to_string(patch.param) + "=" + std::to_string(patch.value);
    }
    if (events > 0) text += " of " + std::to_string(events) + " events";
    return Take(ticket, text);
  }
  Status UploadGraph(hal::Ticket ticket, hal::Graph&) override { return Take(ticket, "upload"); }
  /// The parameters by value of the last launch, in words.
  [[nodiscard]] const std::vector<std::vector<uint64_t>>& Values() const { return values_; }
  [[nodiscard]] hal::ProgressSink& sink() { return *sink_; }
  Status Copy(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
              const hal::HostLeases&) override {
    if (controls_.touches_memory) Touch(dst, src, bytes);
    return Take(ticket, "copy");
  }
  Status CopyBatch(hal::Ticket ticket, std::span<const hal::BatchedCopy> copies) override {
    if (controls_.refuse_fills.load() > 0) {
      controls_.refuse_fills.fetch_sub(1);
      return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    }
    if (controls_.touches_memory) {
      for (const hal::BatchedCopy& copy : copies) Touch(copy.dst, copy.src, copy.bytes);
    }
    return Take(ticket, "batch of " + std::to_string(copies.size()));
  }
  Status Fill(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t, uint64_t count) override {
    if (controls_.refuse_fills.load() > 0) {
      controls_.refuse_fills.fetch_sub(1);
      return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    }
    if (controls_.touches_memory) Touch(dst, dst, count * element_bytes);
    return Take(ticket, "fill");
  }
  Status Wait(hal::Ticket ticket, hal::Stream& other, hal::Ticket until) override {
    if (RefusesWait()) return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    return Take(ticket, "wait " + static_cast<RecordingStream&>(other).name_ + " " + std::to_string(until));
  }
  Status Nop(hal::Ticket ticket) override { return Take(ticket, "nop"); }
  Result<std::unique_ptr<hal::Memory>> Allocate(hal::Ticket ticket, uint64_t bytes) override {
    if (bytes > controls_.free_bytes.load()) return Status(StatusCode::kOutOfMemory, "no room");
    controls_.free_bytes.fetch_sub(bytes);
    static_cast<void>(Take(ticket, "alloc"));
    return std::unique_ptr<hal::Memory>(new RecordingMemory(bytes));
  }
  Status Free(hal::Ticket ticket, std::unique_ptr<hal::Memory> memory) override {
    {
      std::lock_guard lock(mutex_);
      freed_bytes_[ticket] = memory->bytes();
    }
    return Take(ticket, "free");
  }
  Status Signal() override { return {}; }
  [[nodiscard]] hal::Ticket Completed() const noexcept override {
    return std::atomic_ref(slot_->device_word).load(std::memory_order_acquire);
  }
  [[nodiscard]] Result<hal::Ticket> Resolve(hal::Ticket) override { return Completed(); }
  Status Check() override {
    return controls_.has_faulted.load() ? Status(StatusCode::kDeviceLost, "by the test") : Status();
  }

  Status CopyPeer(hal::Ticket ticket, const hal::PeerCopy& copy) override;
  [[nodiscard]] bool HasStaging(uint64_t bytes) const override { return bytes <= staging_; }
  Status MakeStaging(uint64_t bytes) override {
    controls_.log.Add(name_ + " stages " + std::to_string(bytes));
    controls_.blocking_calls.Pass();
    if (controls_.refuse_blocking_calls.load() > 0) {
      controls_.refuse_blocking_calls.fetch_sub(1);
      return Status(StatusCode::kOutOfMemory, "refused by the test");
    }
    staging_ = bytes;
    return {};
  }
  Status CopyStrided(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                     std::span<const hal::StridedAxis> axes) override {
    if (controls_.touches_memory) TouchStrided(dst, src, element_bytes, axes);
    return Take(ticket, "copy by " + std::to_string(element_bytes) + Show(axes));
  }
  Status FillStrided(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                     std::span<const hal::StridedAxis> axes) override {
    if (controls_.touches_memory) TouchStrided(dst, nullptr, element_bytes, axes);
    return Take(ticket, "fill " + std::to_string(pattern) + " by " + std::to_string(element_bytes) + Show(axes));
  }
  Status CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) override {
    controls_.log.Add(name_ + " copies pageable " + std::to_string(bytes));
    controls_.blocking_calls.Pass();
    if (controls_.refuse_blocking_calls.load() > 0) {
      controls_.refuse_blocking_calls.fetch_sub(1);
      return Status(controls_.blocking_call_refusal.load(), "refused by the test", 8);
    }
    constexpr uint64_t kPretended = 1 << 24;
    if (bytes < kPretended) std::memcpy(dst, src, bytes);
    return {};
  }
  Status Record(hal::Ticket ticket, hal::EventHandle& event_handle) override {
    static_cast<RecordingEventHandle&>(event_handle).stamp = controls_.clock.fetch_add(1);
    return Take(ticket, "event_handle");
  }
  Status WaitEvent(hal::Ticket ticket, hal::EventHandle&) override {
    if (RefusesWait()) return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    return Take(ticket, "wait event_handle");
  }
  [[nodiscard]] uint64_t NativeHandle() const override { return handle_; }

  /// Completes everything up to `ticket`, as a device would. Thread: any.
  void Complete(hal::Ticket ticket) {
    const std::lock_guard telling(telling_);
    {
      std::lock_guard lock(mutex_);
      for (auto freed = freed_bytes_.begin(); freed != freed_bytes_.end() && freed->first <= ticket;) {
        controls_.free_bytes.fetch_add(freed->second);
        freed = freed_bytes_.erase(freed);
      }
    }
    std::atomic_ref(slot_->device_word).store(ticket, std::memory_order_release);
    sink_->Progress(ticket);
  }

 private:
  bool RefusesWait() {
    if (controls_.refuse_waits.load() == 0) return false;
    controls_.refuse_waits.fetch_sub(1);
    return true;
  }
  Status Take(hal::Ticket ticket, const std::string& what) {
    const std::string line = name_ + " " + std::to_string(ticket) + " " + what;
    // Before the line is written: a test that has read it may change them.
    const bool has_faulted = controls_.has_faulted.load();
    const bool completes_at_once = controls_.completes_at_once.load();
    controls_.log.Add(line);
    if (has_faulted) {
      // No word moves any more.
    } else if (controls_.is_polled.load()) {
      // Within a few microseconds, from the moment of the call on to well after it: each time a little later.
      const auto due =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(controls_.delay_ns.fetch_add(37) % 6000);
      controls_.gpu.Write(&slot_->device_word, ticket, due);
    } else if (completes_at_once) {
      Complete(ticket);
    }
    if (controls_.on_taken) controls_.on_taken(line);
    return {};
  }

  BackendControls& controls_;
  std::string name_;
  uint64_t handle_ = reinterpret_cast<uintptr_t>(this);
  protocol::TimelineSlot* slot_;
  hal::ProgressSink* sink_;
  std::mutex telling_;  // Held while the sink is told; the stream does not end meanwhile.
  std::mutex mutex_;
  std::map<hal::Ticket, uint64_t> freed_bytes_;  // Guarded by mutex_.
  std::vector<std::vector<uint64_t>> values_;    // The channel's; read when that is quiet.
  uint64_t staging_ = 0;  // The channel's, or the blocking-calls thread's while the stream waits for it.
};

class RecordingDevice final : public hal::Device {
 public:
  RecordingDevice(BackendControls& controls, uint32_t ordinal) : controls_(controls), ordinal_(ordinal) {
    info_.ordinal = ordinal;
  }
  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool NeedsPolling() const override { return controls_.is_polled.load(); }
  Status BindChannelThread() override { return {}; }
  Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override {
    // Long enough that the closing thread gets there first.
    if (controls_.is_polled.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (controls_.refuse_streams.load() > 0) {
      controls_.refuse_streams.fetch_sub(1);
      return Status(StatusCode::kOutOfMemory, "refused by the test");
    }
    auto stream = std::make_unique<RecordingStream>(controls_, name() + std::to_string(streams.size()), request);
    streams.push_back(stream.get());
    return std::unique_ptr<hal::Stream>(std::move(stream));
  }
  Result<std::shared_ptr<hal::Module>> LoadModule(std::span<const std::byte>) override {
    return std::shared_ptr<hal::Module>(new RecordingModule(controls_.kernel_limits));
  }
  Result<std::unique_ptr<hal::Graph>> BuildGraph(std::vector<hal::GraphNode> nodes) override {
    controls_.log.Add("builds a graph of " + std::to_string(nodes.size()));
    controls_.blocking_calls.Pass();
    if (controls_.refuse_blocking_calls.load() > 0) {
      controls_.refuse_blocking_calls.fetch_sub(1);
      return Status(controls_.blocking_call_refusal.load(), "refused by the test", 8);
    }
    built = nodes;
    return std::unique_ptr<hal::Graph>(new RecordingGraph(controls_, std::move(nodes)));
  }
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override {
    return std::unique_ptr<hal::Memory>(new RecordingMemory(count * sizeof(protocol::FaultSlot)));
  }
  [[nodiscard]] uint64_t FreeBytes() const override { return controls_.free_bytes.load(); }

  [[nodiscard]] bool NeedsLockedMemory() const override { return controls_.needs_locked_memory.load(); }
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> CreateEvent(protocol::EventKind kind) override {
    return std::unique_ptr<hal::EventHandle>(new RecordingEventHandle(controls_, kind));
  }
  [[nodiscard]] Result<double> Elapsed(const hal::EventHandle& start, const hal::EventHandle& end) override {
    const auto stamp = [](const hal::EventHandle& event_handle) {
      return static_cast<double>(static_cast<const RecordingEventHandle&>(event_handle).stamp);
    };
    return stamp(end) - stamp(start);
  }
  [[nodiscard]] Result<hal::IpcHandle> ExportEvent(hal::EventHandle&) override { return HandleOf('e'); }
  [[nodiscard]] Result<std::unique_ptr<hal::EventHandle>> OpenEvent(const hal::IpcHandle& handle) override {
    controls_.blocking_calls.Pass();
    if (handle != HandleOf('e')) return Status(StatusCode::kArgument, "no event_handle's handle");
    return CreateEvent(protocol::EventKind::kInterprocess);
  }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t bytes) override {
    controls_.log.Add("allocates " + std::to_string(bytes));
    controls_.blocking_calls.Pass();
    if (bytes > controls_.free_bytes.load()) {
      controls_.answer.Pass();
      return Status(StatusCode::kOutOfMemory, "no room");
    }
    controls_.free_bytes.fetch_sub(bytes);
    return std::unique_ptr<hal::Memory>(new LoggedMemory(controls_.log, bytes));
  }
  [[nodiscard]] uint64_t KeptBytes() const override { return controls_.kept_bytes.load(); }
  void GiveBackKept() override {
    controls_.log.Add("gives back");
    controls_.blocking_calls.Pass();
    controls_.free_bytes.fetch_add(controls_.kept_bytes.exchange(0));
  }
  [[nodiscard]] Result<hal::IpcHandle> ExportMemory(const hal::Memory&) override { return HandleOf('m'); }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle& handle, uint64_t bytes) override {
    controls_.blocking_calls.Pass();
    if (handle != HandleOf('m')) return Status(StatusCode::kArgument, "no memory's handle");
    return std::unique_ptr<hal::Memory>(new RecordingMemory(bytes));
  }
  [[nodiscard]] Result<hal::PoolStats> PoolUse() override { return hal::PoolStats{.total = 1000, .used = 10}; }
  Status SetReleaseThreshold(uint64_t bytes) override {
    threshold_ = bytes;
    return {};
  }
  [[nodiscard]] Result<uint64_t> ReleaseThreshold() override { return threshold_; }
  Status Trim(uint64_t) override { return {}; }
  Status ResetHighWater() override { return {}; }
  [[nodiscard]] Result<hal::PeerState> Peer(uint32_t ordinal, protocol::PeerWhat) override {
    return hal::PeerState{.can_grant = true, .is_granted = ordinal == ordinal_};
  }
  Status SetPeer(uint32_t, protocol::PeerWhat, bool) override { return {}; }
  [[nodiscard]] Result<protocol::PeerRoute> ProbePeer(hal::Device& other) override {
    controls_.log.Add("probes " + name() + " " + static_cast<RecordingDevice&>(other).name());
    controls_.probe.Pass();
    if (controls_.refuse_probe.load()) return Status(StatusCode::kLaunchFailed, "refused by the test");
    return controls_.route.load();
  }
  void Close() override { controls_.log.Add("closes " + name()); }

  [[nodiscard]] std::string name() const { return std::string(1, static_cast<char>('a' + ordinal_)); }

  std::vector<hal::GraphNode> built;      // The nodes of the last graph; read when the blocking-calls thread is quiet.
  std::vector<RecordingStream*> streams;  // In the order they were made; read when the channel is quiet.

 private:
  static hal::IpcHandle HandleOf(char what) {
    hal::IpcHandle handle{};
    handle.fill(static_cast<std::byte>(what));
    return handle;
  }

  BackendControls& controls_;
  uint32_t ordinal_;
  hal::DeviceInfo info_;
  uint64_t threshold_ = 0;  // Thread: control.
};

inline Status RecordingStream::CopyPeer(hal::Ticket ticket, const hal::PeerCopy& copy) {
  return Take(ticket, "copy " + static_cast<RecordingDevice*>(copy.dst_device)->name() + " from " +
                          static_cast<RecordingDevice*>(copy.src_device)->name() +
                          (copy.route == protocol::PeerRoute::kStaged ? " staged" : ""));
}

class RecordingBackend final : public hal::Backend {
 public:
  [[nodiscard]] const char* name() const override { return "recording"; }
  [[nodiscard]] hal::BackendReport Enumerate() override { return {}; }
  Result<std::unique_ptr<hal::Device>> Open(uint32_t ordinal, std::span<protocol::TimelineSlot>) override {
    auto device = std::make_unique<RecordingDevice>(controls, ordinal);
    devices.push_back(device.get());
    return std::unique_ptr<hal::Device>(std::move(device));
  }

  BackendControls controls;
  std::vector<RecordingDevice*> devices;
};

}  // namespace millrace::testing
