// A device of a recording backend, with short names for the records that tests submit.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "recording_backend.h"
#include "runtime/registry.h"
#include "testing.h"

namespace millrace::testing {

using protocol::MemorySpace;
using protocol::Opcode;

constexpr uint32_t Handle(uint32_t index, uint32_t generation = 1) {
  return index | (generation << protocol::kHandleIndexBits);
}

template <typename T>
std::span<const std::byte> Bytes(const T& record) {
  return std::as_bytes(std::span(&record, 1));
}

class Rig {
 public:
  explicit Rig(RecordingBackend& backend, uint32_t ordinal = 0, uint32_t max_pending = 1 << 20,
               protocol::Schedule schedule = protocol::Schedule::kAuto)
      : timeline_(std::make_shared<std::vector<protocol::TimelineSlot>>(protocol::kMaxStreams)) {
    auto opened = Registry::Instance().Open(backend, {.ordinal = ordinal,
                                                      .timeline = *timeline_,
                                                      .max_pending = max_pending,
                                                      .schedule = schedule,
                                                      .memory = timeline_});
    MR_CHECK(opened.ok());
    channel = opened.value();
    device = backend.devices.back();
    log = &backend.controls.log;
  }
  ~Rig() {
    channel->Close();
    Registry::Instance().Remove(channel->id());
  }

  uint32_t Stream() {
    const auto index = static_cast<uint32_t>(channel->ReserveStream(nullptr));
    protocol::StreamCreateRecord record{};
    Head(record, index);
    channel->Submit(Bytes(record));
    return index;
  }
  template <typename T>
  void Head(T& record, uint32_t stream) {
    protocol::RecordHeader header{static_cast<uint16_t>(T::kOpcode), 0, sizeof(T), stream, 0};
    std::memcpy(&record, &header, sizeof(header));
  }
  Channel::Submission Nop(uint32_t stream) {
    protocol::NopRecord record{};
    Head(record, stream);
    return channel->Submit(Bytes(record));
  }
  Ticket Wait(uint32_t stream, const Rig& device, uint32_t target, Ticket ticket) {
    protocol::WaitRecord record{};
    Head(record, stream);
    record.device = device.channel->id();
    record.target = target;
    record.ticket = ticket;
    return channel->Submit(Bytes(record)).ticket;
  }
  template <typename T>
  Ticket Submit(uint32_t stream, T record) {
    Head(record, stream);
    return channel->Submit(Bytes(record)).ticket;
  }
  /// With its axes behind it.
  template <typename T>
  Ticket Strided(uint32_t stream, T record, const std::vector<protocol::StridedAxis>& axes) {
    std::vector<std::byte> bytes(sizeof(T) + axes.size() * sizeof(protocol::StridedAxis));
    record.rank = static_cast<uint32_t>(axes.size());
    const protocol::RecordHeader header{static_cast<uint16_t>(T::kOpcode), 0, static_cast<uint32_t>(bytes.size()),
                                        stream, 0};
    std::memcpy(&record, &header, sizeof(header));
    std::memcpy(bytes.data(), &record, sizeof(T));
    if (!axes.empty()) std::memcpy(bytes.data() + sizeof(T), axes.data(), axes.size() * sizeof(protocol::StridedAxis));
    return channel->Submit(bytes).ticket;
  }
  Ticket Alloc(uint32_t stream, uint32_t handle, uint64_t bytes,
               protocol::AllocKind kind = protocol::AllocKind::kPool) {
    return Submit(stream, protocol::AllocRecord{.handle = handle, .kind = static_cast<uint32_t>(kind), .bytes = bytes});
  }
  Ticket Free(uint32_t stream, uint32_t handle) {
    protocol::FreeRecord record{};
    Head(record, stream);
    record.handle = handle;
    return channel->Submit(Bytes(record)).ticket;
  }
  Ticket Fill(uint32_t stream, uint32_t handle, uint64_t count) {
    protocol::FillRecord record{};
    Head(record, stream);
    record.handle = handle;
    record.element_bytes = 1;
    record.count = count;
    return channel->Submit(Bytes(record)).ticket;
  }
  Ticket Copy(uint32_t stream, uint32_t dst, uint32_t src, uint64_t bytes,
              MemorySpace dst_space = MemorySpace::kDevice) {
    protocol::CopyRecord record{};
    Head(record, stream);
    record.dst_handle = dst;
    record.src_handle = src;
    record.dst_device = record.src_device = channel->id();
    record.dst_space = static_cast<uint16_t>(dst_space);
    record.src_space = static_cast<uint16_t>(MemorySpace::kDevice);
    record.bytes = bytes;
    return channel->Submit(Bytes(record)).ticket;
  }
  /// Memory of a device, from offset 0 on.
  struct End {
    const Rig& rig;
    uint32_t handle;
    MemorySpace space = MemorySpace::kDevice;
  };
  Ticket Copy(uint32_t stream, End dst, End src, uint64_t bytes) {
    return Submit(stream, protocol::CopyRecord{.dst_handle = dst.handle,
                                               .src_handle = src.handle,
                                               .dst_space = static_cast<uint16_t>(dst.space),
                                               .src_space = static_cast<uint16_t>(src.space),
                                               .dst_device = dst.rig.channel->id(),
                                               .src_device = src.rig.channel->id(),
                                               .bytes = bytes});
  }
  Ticket Hold(uint32_t stream) { return Submit(stream, protocol::HoldRecord{}); }
  Ticket EventHandle(uint32_t stream, uint32_t handle, protocol::EventKind kind = protocol::EventKind::kTiming) {
    return Submit(stream, protocol::RecordEventRecord{.handle = handle, .kind = static_cast<uint32_t>(kind)});
  }
  /// Of one block.
  struct Block {
    uint32_t threads = 1;
    uint32_t shared_bytes = 0;
    /// Not 0: a cooperative launch of so many.
    uint32_t together = 0;
  };
  Ticket Launch(uint32_t stream, uint32_t kernel, uint32_t memory, protocol::Access access, Block block = {1, 0, 0}) {
    struct {
      protocol::LaunchRecord launch;
      protocol::LaunchArg arg;
    } record{};
    protocol::RecordHeader header{static_cast<uint16_t>(Opcode::kLaunch), 0, sizeof(record), stream, 0};
    std::memcpy(&record, &header, sizeof(header));
    record.launch.kernel = kernel;
    record.launch.arg_count = 1;
    record.launch.grid_x = record.launch.grid_y = record.launch.grid_z = 1;
    record.launch.block_x = block.threads;
    record.launch.block_y = record.launch.block_z = 1;
    record.launch.shared_bytes = block.shared_bytes;
    if (block.together > 0) {
      record.launch.grid_x = block.together;
      record.launch.flags = static_cast<uint32_t>(protocol::LaunchFlag::kCooperative);
    }
    record.arg.kind = static_cast<uint8_t>(protocol::ArgKind::kMemory);
    record.arg.size = 8;
    record.arg.access = static_cast<uint8_t>(access);
    record.arg.handle = memory;
    return channel->Submit(Bytes(record)).ticket;
  }
  /// The device's, which kernels set when they report.
  uint32_t& FaultWord() { return (*timeline_)[0].fault; }
  Ticket Completed(uint32_t stream) { return channel->FindStream(stream)->Completed(); }
  bool Completes(uint32_t stream, Ticket ticket) {
    return Eventually([&] { return Completed(stream) >= ticket; });
  }
  bool Parks(uint32_t stream, ParkReason reason) {
    return Eventually([&] {
      for (const ParkedStream& parked : channel->Stats().parked) {
        if (parked.stream == stream && parked.reason == reason) return true;
      }
      return false;
    });
  }
  /// Records behind one that parked its stream have been read when a later record of another stream has ended.
  bool HasReadAll() { return Completes(Stream(), 1); }
  bool Logs(const std::string& line) {
    return Eventually([&] { return log->Find(line) >= 0; });
  }
  std::vector<Failure> Failures(uint32_t stream) { return channel->Failures(stream, 0, UINT32_MAX).intervals; }
  RecordingStream& Backend(uint32_t index) { return *device->streams[index]; }

  std::shared_ptr<Channel> channel;
  RecordingDevice* device = nullptr;
  CallLog* log = nullptr;

 private:
  std::shared_ptr<std::vector<protocol::TimelineSlot>> timeline_;
};

}  // namespace millrace::testing
