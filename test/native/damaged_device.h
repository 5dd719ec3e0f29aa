// A device for records that anyone may have written, and records of every kind to begin with.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {

/// In place of an opcode: the bytes behind the header are the definition of a graph.
inline constexpr uint16_t kDefinition = 0xffff;
inline constexpr uint32_t kStreams = 32;
inline constexpr uint32_t kMemories = 4;
inline constexpr uint64_t kMemoryBytes = 64;
inline constexpr size_t kHeadBytes = sizeof(protocol::RecordHeader);

/// A device with memory, a kernel and host memory under the handles that the inputs name.
class DamagedDevice {
 public:
  DamagedDevice() {
    backend_.controls.touches_memory = true;
    backend_.controls.free_bytes = 1 << 20;
    rig_.emplace(backend_);
    for (uint32_t& stream : streams_) stream = rig_->Stream();
    for (uint32_t n = 0; n < kMemories; ++n) rig_->Alloc(streams_[0], Handle(n), kMemoryBytes);
    Install(*rig_);
    MR_CHECK(rig_->channel->RegisterHost(Handle(0), pages_, false).ok());
    MR_CHECK(rig_->Completes(streams_[0], kMemories + 1));
  }

  /// Streams may wait for what nobody submits, so it is given up.
  ~DamagedDevice() { rig_->channel->Abandon(std::chrono::seconds(20)); }

  void Try(std::span<const std::byte> input) {
    protocol::RecordHeader header;
    if (input.size() < kHeadBytes) return;
    std::memcpy(&header, input.data(), kHeadBytes);
    if (header.opcode == kDefinition) {
      rig_->channel->DefineGraph(Handle(graphs_++ % 8), input.subspan(kHeadBytes), 0);
      return;
    }
    const bool is_hold = header.opcode == static_cast<uint16_t>(Opcode::kHold);
    const bool is_external = header.opcode == static_cast<uint16_t>(Opcode::kExternal);
    // Only who reserved a stream has its number.
    header.stream = streams_[header.stream % kStreams];
    ByteList record(input.begin(), input.end());
    std::memcpy(record.data(), &header, kHeadBytes);
    const auto submitted = rig_->channel->Submit(record);
    if (is_hold) rig_->channel->ReleaseHold(header.stream, submitted.ticket);
    if (is_external) rig_->channel->FailExternal(header.stream, submitted.ticket);
  }

  [[nodiscard]] uint32_t id() const { return rig_->channel->id(); }

  [[nodiscard]] std::vector<Failure> FailuresOfFirstStream() {
    MR_CHECK(rig_->Completes(streams_[0], rig_->Nop(streams_[0]).ticket));
    return rig_->Failures(streams_[0]);
  }

  /// It still runs what another stream submits.
  [[nodiscard]] bool Works() {
    const uint32_t stream = rig_->Stream();
    rig_->Alloc(stream, Handle(100), kMemoryBytes);
    return rig_->Completes(stream, rig_->Fill(stream, Handle(100), kMemoryBytes));
  }

 private:
  RecordingBackend backend_;
  std::array<std::byte, 4096> pages_{};
  std::optional<Rig> rig_;
  std::array<uint32_t, kStreams> streams_{};
  uint32_t graphs_ = 0;
};

/// Records of every kind, each of which a device takes.
inline std::vector<ByteList> WholeInputs(uint32_t id) {
  using namespace protocol;
  const auto device = static_cast<uint16_t>(MemorySpace::kDevice);
  const auto host = static_cast<uint16_t>(MemorySpace::kHost);
  const std::vector<StridedAxis> axes = {{2, 16, 16}, {4, 4, 4}};
  const BatchedCopy batched{.dst_handle = Handle(1),
                            .src_handle = Handle(0),
                            .dst_space = device,
                            .src_space = device,
                            .dst_device = id,
                            .src_device = id,
                            .bytes = 32};
  const auto copy = [&](uint16_t to, uint16_t from) {
    return RecordBytes(CopyRecord{.dst_handle = Handle(0),
                                  .src_handle = Handle(0),
                                  .dst_space = to,
                                  .src_space = from,
                                  .dst_device = id,
                                  .src_device = id,
                                  .bytes = kMemoryBytes});
  };
  const TextureShape shape{.width = 4, .height = 4, .format = 0, .channels = 1};
  GraphBytes graph;
  const uint32_t first = graph.Node(id, FillBytes(Handle(1), kMemoryBytes));
  graph.Node(
      id,
      LaunchBytes(kKernel, {MemoryArg(Handle(1), Access::kRead), MemoryArg(Handle(2), Access::kWrite), ScalarArg(1)}),
      {first});
  graph.Patch(1, 2, 0);
  GraphBytes body;
  body.Node(id, FillBytes(Handle(2), 8));
  graph.Condition(id, {.kind = 1, .handle = Handle(0)}, {body}, {first});
  ByteList definition = RecordBytes(NopRecord{});
  const auto opcode = kDefinition;
  std::memcpy(definition.data(), &opcode, sizeof(opcode));
  for (const std::byte each : graph.Bytes()) definition.push_back(each);

  return {
      RecordBytes(AllocRecord{.handle = Handle(9), .bytes = kMemoryBytes}),
      RecordBytes(FreeRecord{.handle = Handle(3)}),
      RecordBytes(AdoptRecord{.handle = Handle(8), .source = Handle(2), .bytes = kMemoryBytes}),
      RecordBytes(FillRecord{.handle = Handle(1), .element_bytes = 4, .offset = 8, .count = 4, .pattern = 7}),
      copy(device, device),
      copy(device, host),
      copy(host, device),
      RecordBytes(CopyBatchRecord{.count = 2}, std::vector{batched, batched}),
      RecordBytes(CopyStridedRecord{.dst_handle = Handle(1), .src_handle = Handle(0), .element_bytes = 4, .rank = 2},
                  axes),
      RecordBytes(FillStridedRecord{.handle = Handle(1), .element_bytes = 4, .rank = 2}, axes),
      RecordBytes(AllocArrayRecord{.handle = Handle(20), .bytes = hal::TotalBytes(shape), .shape = shape}),
      RecordBytes(CreateTextureRecord{.handle = Handle(21), .source = Handle(20), .shape = shape}),
      RecordBytes(CopyArrayRecord{.array = Handle(20), .memory = Handle(1), .shape = shape, .is_upload = 1}),
      RecordBytes(RecordEventRecord{.handle = Handle(0), .kind = 1}),
      RecordBytes(WaitEventRecord{.handle = Handle(0)}),
      RecordBytes(FreeEventRecord{.handle = Handle(0)}),
      RecordBytes(HoldRecord{}),
      LaunchBytes(kKernel, {MemoryArg(Handle(0), Access::kRead), MemoryArg(Handle(1), Access::kWrite), ScalarArg(3)}),
      RecordBytes(ExternalRecord{.arg_count = 1}, std::vector{MemoryArg(Handle(1), Access::kReadWrite)}),
      definition,
      RecordBytes(LaunchGraphRecord{.graph = kGraph, .arg_count = 1}, std::vector{ScalarArg(5)}),
      RecordBytes(UploadGraphRecord{.graph = kGraph}),
      RecordBytes(FreeGraphRecord{.graph = kGraph}),
      RecordBytes(WaitRecord{.device = id, .target = 0, .ticket = 1}),
      RecordBytes(NopRecord{}),
      // Of a stream that exists already: refused as it is.
      RecordBytes(StreamCreateRecord{}),
  };
}

}  // namespace millrace::testing
