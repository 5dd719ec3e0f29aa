// A backend that does nothing but write down what it was asked, and completes work when the test says so. Points, parks
// and failures of the runtime are tested on it without a device and without luck.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hal/hal.h"

namespace millrace::testing {

class RecordingBackend;

/// The log of all devices of a backend, in the order of the calls.
class CallLog {
 public:
  void Add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::vector<std::string> Lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Position of the first line that equals `line`, or -1.
  [[nodiscard]] int Find(const std::string& line) {
    std::lock_guard lock(mutex_);
    for (size_t n = 0; n < lines_.size(); ++n) {
      if (lines_[n] == line) return static_cast<int>(n);
    }
    return -1;
  }
  [[nodiscard]] size_t Size() {
    std::lock_guard lock(mutex_);
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Writes words when they are due, one after the other, and tells nobody: as a GPU does.
class LateWriter {
 public:
  LateWriter() : thread_([this] { Run(); }) {}
  ~LateWriter() {
    is_over_ = true;
    thread_.join();
  }
  void Write(uint64_t* word, uint64_t value, std::chrono::steady_clock::time_point due) {
    while (word_.load() != nullptr) std::this_thread::yield();
    value_ = value;
    due_ = due;
    word_.store(word);
  }

 private:
  void Run() {
    while (!is_over_.load()) {
      uint64_t* const word = word_.load();
      if (word == nullptr) {
        std::this_thread::yield();
        continue;
      }
      while (std::chrono::steady_clock::now() < due_) {
      }
      std::atomic_ref(*word).store(value_, std::memory_order_release);
      word_.store(nullptr);
    }
  }
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t*> word_{nullptr};
  uint64_t value_ = 0;  // Both are the writer's while `word_` is set.
  std::chrono::steady_clock::time_point due_;
  std::thread thread_;
};

struct BackendControls {
  CallLog log;
  std::atomic<bool> completes_at_once{true};
  /// As a GPU: the stream writes its word a little later, from nowhere, and tells nobody.
  std::atomic<bool> is_polled{false};
  std::atomic<uint64_t> delay_ns{0};
  LateWriter gpu;
  std::atomic<int> refuse_launches{0};  // The next so many launches are refused.
  std::atomic<uint64_t> free_bytes{UINT64_MAX};
};

class RecordingMemory final : public hal::Memory {
 public:
  explicit RecordingMemory(uint64_t bytes) : storage_(bytes == 0 ? 1 : bytes), bytes_(bytes) {}
  [[nodiscard]] std::byte* address() const override { return const_cast<std::byte*>(storage_.data()); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> storage_;
  uint64_t bytes_;
};

class RecordingStream final : public hal::Stream {
 public:
  RecordingStream(BackendControls& controls, std::string name, const hal::StreamRequest& request)
      : controls_(controls), name_(std::move(name)), slot_(request.slot), sink_(request.sink) {}
  ~RecordingStream() override { const std::lock_guard telling(telling_); }

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest&) override {
    if (controls_.refuse_launches.load() > 0) {
      controls_.refuse_launches.fetch_sub(1);
      return Status(StatusCode::kLaunchFailed, "refused by the test", 7);
    }
    return Take(ticket, "launch");
  }
  Status Copy(hal::Ticket ticket, std::byte*, const std::byte*, uint64_t) override { return Take(ticket, "copy"); }
  Status Fill(hal::Ticket ticket, std::byte*, uint32_t, uint64_t, uint64_t) override { return Take(ticket, "fill"); }
  Status Wait(hal::Ticket ticket, hal::Stream& other, hal::Ticket until) override {
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
  Status Check() override { return {}; }

  Status CopyPeer(hal::Ticket, const hal::PeerCopy&) override { return {StatusCode::kUnsupported, "peer copies"}; }
  Status CopyStrided(hal::Ticket, std::byte*, const std::byte*, uint32_t, std::span<const hal::StridedAxis>) override {
    return {StatusCode::kUnsupported, "strided copies"};
  }
  Status FillStrided(hal::Ticket, std::byte*, uint32_t, uint64_t, std::span<const hal::StridedAxis>) override {
    return {StatusCode::kUnsupported, "strided fills"};
  }
  Status CopyPageable(std::byte*, const std::byte*, uint64_t) override {
    return {StatusCode::kUnsupported, "pageable copies"};
  }
  Status Record(hal::Ticket, hal::Mark&) override { return {StatusCode::kUnsupported, "marks"}; }
  Status WaitMark(hal::Ticket, hal::Mark&) override { return {StatusCode::kUnsupported, "marks"}; }
  [[nodiscard]] uint64_t NativeHandle() const override { return 0; }

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
  Status Take(hal::Ticket ticket, const std::string& what) {
    controls_.log.Add(name_ + " " + std::to_string(ticket) + " " + what);
    if (controls_.is_polled.load()) {
      // Within a few microseconds, from the moment of the call on to well after it: each time a little later.
      const auto due =
          std::chrono::steady_clock::now() + std::chrono::nanoseconds(controls_.delay_ns.fetch_add(37) % 6000);
      controls_.gpu.Write(&slot_->device_word, ticket, due);
    } else if (controls_.completes_at_once.load()) {
      Complete(ticket);
    }
    return {};
  }

  BackendControls& controls_;
  std::string name_;
  protocol::TimelineSlot* slot_;
  hal::ProgressSink* sink_;
  std::mutex telling_;  // Held while the sink is told; the stream does not end meanwhile.
  std::mutex mutex_;
  std::map<hal::Ticket, uint64_t> freed_bytes_;  // Guarded by mutex_.
};

class RecordingKernel final : public hal::Kernel {};

class RecordingDevice final : public hal::Device {
 public:
  RecordingDevice(BackendControls& controls, uint32_t ordinal) : controls_(controls), ordinal_(ordinal) {
    info_.ordinal = ordinal;
  }
  [[nodiscard]] const hal::DeviceInfo& info() const override { return info_; }
  [[nodiscard]] bool NeedsPolling() const override { return controls_.is_polled.load(); }
  Status BindChannelThread() override { return {}; }
  Result<std::unique_ptr<hal::Stream>> CreateStream(const hal::StreamRequest& request) override {
    // Long enough for whoever closes the device to be there first.
    if (controls_.is_polled.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::string name(1, static_cast<char>('a' + ordinal_));
    name += std::to_string(streams.size());
    auto stream = std::make_unique<RecordingStream>(controls_, name, request);
    streams.push_back(stream.get());
    return std::unique_ptr<hal::Stream>(std::move(stream));
  }
  Result<std::shared_ptr<hal::Kernel>> LoadKernel(const hal::KernelRequest&) override {
    return std::shared_ptr<hal::Kernel>(new RecordingKernel);
  }
  Status RegisterHost(std::span<std::byte>) override { return {}; }
  Status UnregisterHost(std::span<std::byte>) override { return {}; }
  Result<std::unique_ptr<hal::Memory>> AllocateFaultSlots(uint32_t count) override {
    return std::unique_ptr<hal::Memory>(new RecordingMemory(count * sizeof(protocol::FaultSlot)));
  }
  [[nodiscard]] uint64_t FreeBytes() const override { return controls_.free_bytes.load(); }

  [[nodiscard]] bool NeedsLockedMemory() const override { return false; }
  [[nodiscard]] Result<std::unique_ptr<hal::Mark>> CreateMark(protocol::MarkKind) override {
    return Status(StatusCode::kUnsupported, "marks");
  }
  [[nodiscard]] Result<double> Elapsed(const hal::Mark&, const hal::Mark&) override {
    return Status(StatusCode::kUnsupported, "marks");
  }
  [[nodiscard]] Result<hal::IpcHandle> ExportMark(hal::Mark&) override {
    return Status(StatusCode::kUnsupported, "other processes");
  }
  [[nodiscard]] Result<std::unique_ptr<hal::Mark>> OpenMark(const hal::IpcHandle&) override {
    return Status(StatusCode::kUnsupported, "other processes");
  }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> AllocateInterprocess(uint64_t) override {
    return Status(StatusCode::kUnsupported, "other processes");
  }
  [[nodiscard]] Result<hal::IpcHandle> ExportMemory(const hal::Memory&) override {
    return Status(StatusCode::kUnsupported, "other processes");
  }
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> OpenMemory(const hal::IpcHandle&, uint64_t) override {
    return Status(StatusCode::kUnsupported, "other processes");
  }
  [[nodiscard]] Result<hal::PoolStats> PoolUse() override { return Status(StatusCode::kUnsupported, "pools"); }
  Status SetReleaseThreshold(uint64_t) override { return {StatusCode::kUnsupported, "pools"}; }
  [[nodiscard]] Result<uint64_t> ReleaseThreshold() override { return Status(StatusCode::kUnsupported, "pools"); }
  Status Trim(uint64_t) override { return {StatusCode::kUnsupported, "pools"}; }
  Status ResetHighWater() override { return {StatusCode::kUnsupported, "pools"}; }
  [[nodiscard]] Result<hal::PeerState> Peer(uint32_t, protocol::PeerWhat) override {
    return Status(StatusCode::kUnsupported, "peers");
  }
  Status SetPeer(uint32_t, protocol::PeerWhat, bool) override { return {StatusCode::kUnsupported, "peers"}; }
  [[nodiscard]] Result<protocol::PeerRoute> ProbePeer(hal::Device&) override {
    return Status(StatusCode::kUnsupported, "peers");
  }
  void Close() override {}

  std::vector<RecordingStream*> streams;  // In the order they were made; read when the channel is quiet.

 private:
  BackendControls& controls_;
  uint32_t ordinal_;
  hal::DeviceInfo info_;
};

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
