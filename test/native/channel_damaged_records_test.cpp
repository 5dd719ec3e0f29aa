// Records and definitions of graphs with damaged fields. No byte is read outside of a record, and none is touched
// outside of the memory that it names; the device works afterwards. MILLRACE_RECORDS is the number of inputs.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "graph_rig.h"

namespace millrace::testing {
namespace {

/// In place of an opcode: the bytes behind the header are the definition of a graph.
constexpr uint16_t kDefinition = 0xffff;
constexpr uint32_t kStreams = 32;
constexpr uint32_t kMemories = 4;
constexpr uint64_t kMemoryBytes = 64;
constexpr size_t kHeadBytes = sizeof(protocol::RecordHeader);

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
std::vector<ByteList> WholeInputs(uint32_t id) {
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

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}
  size_t Below(size_t count) { return random_() % count; }

  ByteList Of(ByteList bytes) {
    for (size_t n = Below(4); n > 0; --n) {
      const size_t width = size_t{1} << Below(4);
      const size_t at = Below(bytes.size() / width) * width;
      uint64_t value = random_();
      if (Below(4) != 0) value = kValues[Below(kValues.size())];
      if (Below(3) == 0) {
        uint64_t old = 0;
        std::memcpy(&old, &bytes[at], width);
        value = old + Below(17) - 8;
      }
      std::memcpy(&bytes[at], &value, width);
    }
    if (Below(4) == 0) bytes.resize(kHeadBytes + Below(bytes.size() + 8 - kHeadBytes));
    if (Below(4) != 0) {
      const auto size = static_cast<uint32_t>(bytes.size());
      std::memcpy(&bytes[offsetof(protocol::RecordHeader, size)], &size, sizeof(size));
    }
    const auto stream = static_cast<uint32_t>(Below(kStreams));
    std::memcpy(&bytes[offsetof(protocol::RecordHeader, stream)], &stream, sizeof(stream));
    return bytes;
  }

 private:
  static constexpr std::array<uint64_t, 22> kValues = {
      0,   1,    2,    3,         4,         7,          8,          16,        63,         64,         65,
      128, 4095, 4096, Handle(0), Handle(1), Handle(20), UINT32_MAX, INT32_MAX, 1ull << 63, UINT64_MAX, UINT16_MAX};
  std::mt19937_64 random_;
};

MR_TEST(damaged_records_touch_no_other_memory_and_leave_a_device_that_works) {
  const char* const given = std::getenv("MILLRACE_RECORDS");
  const size_t count = given == nullptr ? 100'000 : std::strtoull(given, nullptr, 10);
  constexpr size_t kSeries = 1000;
  for (size_t done = 0; done < count; done += kSeries) {
    Damage damage(done);
    DamagedDevice device;
    const std::vector<ByteList> whole = WholeInputs(device.id());
    for (size_t n = 0; n < kSeries; ++n) device.Try(damage.Of(whole[damage.Below(whole.size())]));
    if (!device.Works()) {
      std::printf("  the device stands still after the series %zu\n", done);
      MR_REQUIRE(false);
    }
  }
}

MR_TEST(undamaged_records_do_what_they_say) {
  DamagedDevice device;
  std::vector<ByteList> whole = WholeInputs(device.id());
  whole.pop_back();
  for (const ByteList& each : whole) device.Try(each);
  // This backend has no textures, and the function of an EXTERNAL record fails here.
  for (const Failure& failure : device.FailuresOfFirstStream()) {
    const StatusCode code = failure.status.code();
    MR_EXPECT(code == StatusCode::kUnsupported || code == StatusCode::kFunction || code == StatusCode::kUpstream);
  }
}

}  // namespace
}  // namespace millrace::testing
