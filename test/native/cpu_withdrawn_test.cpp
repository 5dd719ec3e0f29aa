// Copies of host memory whose owner ends before they run: they do not access it, and the remaining owner gets a report.
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu/backend.h"
#include "cpu_support.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

using protocol::MemorySpace;
using Bytes = std::vector<std::byte>;

Bytes Counted(size_t size) {
  Bytes bytes(size);
  for (size_t n = 0; n < size; ++n) bytes[n] = static_cast<std::byte>(n * 7 + 1);
  return bytes;
}

// One that a single thread runs, and one that several threads share.
constexpr uint64_t kSizes[] = {4096, uint64_t{8} << 20};

MR_TEST(CopiesLeaveMemoryAloneThatWasWithdrawn) {
  for (const uint64_t size : kSizes) {
    auto device = OpenDevice(2);
    auto gate = LoadKernel(*device, "gate");
    std::atomic<uint32_t> flag{0};
    Bytes withdrawn = Counted(size);
    const Bytes before = withdrawn;
    Bytes kept(size);
    const Bytes zeros(size);
    Bytes copied(size);
    const auto lease = std::make_shared<hal::HostLease>();
    const auto other = std::make_shared<hal::HostLease>();
    protocol::FaultSlot reports[3]{};
    uint32_t word = 0;
    Lane lane(*device);
    lane.Launch(gate, {1, 1, 1}, &flag);
    const auto copy = [&](Bytes& dst, const Bytes& src, const hal::HostLeases& host) {
      MR_EXPECT(lane.stream->Copy(++lane.last, dst.data(), src.data(), size, host).ok());
    };
    copy(withdrawn, kept, {.dst = lease, .report = &reports[0], .fault_word = &word});
    copy(kept, withdrawn, {.dst = other, .src = lease, .report = &reports[1], .fault_word = &word});
    copy(copied, before, {.dst = other, .report = &reports[2], .fault_word = &word});
    copy(kept, withdrawn, {.src = lease});
    lease->Withdraw();
    flag.store(1);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT(withdrawn == before);
    MR_EXPECT(kept == zeros);
    MR_EXPECT(copied == before);
    MR_EXPECT_EQ(reports[0].state, hal::kFaultWritten);
    MR_EXPECT_EQ(reports[1].state, hal::kFaultWritten);
    MR_EXPECT_EQ(reports[2].state, 0u);
    MR_EXPECT_EQ(word, 1u);
  }
}

// A channel of a CPU device with one stream.
struct Owner {
  explicit Owner(hal::Backend& backend)
      : timeline(std::make_shared<std::vector<protocol::TimelineSlot>>(protocol::kMaxStreams)) {
    channel = Registry::Instance()
                  .Open(backend, {.ordinal = 0, .timeline = *timeline, .max_pending = 1000, .memory = timeline})
                  .value();
    stream = static_cast<uint32_t>(channel->ReserveStream(nullptr));
    Submit(protocol::StreamCreateRecord{});
  }
  ~Owner() {
    channel->Close();
    Registry::Instance().Remove(channel->id());
  }
  template <typename T>
  Ticket Submit(T record) {
    const protocol::RecordHeader header{static_cast<uint16_t>(T::kOpcode), 0, sizeof(T), stream, 0};
    std::memcpy(static_cast<void*>(&record), &header, sizeof(header));
    return channel->Submit(std::as_bytes(std::span(&record, 1))).ticket;
  }
  Ticket Copy(const Owner& dst, MemorySpace dst_space, const Owner& src, MemorySpace src_space, uint64_t bytes) {
    return Submit(protocol::CopyRecord{.dst_handle = kHandle,
                                       .src_handle = kHandle,
                                       .dst_space = static_cast<uint16_t>(dst_space),
                                       .src_space = static_cast<uint16_t>(src_space),
                                       .dst_device = dst.channel->id(),
                                       .src_device = src.channel->id(),
                                       .bytes = bytes});
  }
  bool Completes(Ticket ticket) {
    return Eventually([&] { return channel->FindStream(stream)->Completed() >= ticket; });
  }

  static constexpr uint32_t kHandle = 1u << protocol::kHandleIndexBits;
  std::shared_ptr<std::vector<protocol::TimelineSlot>> timeline;
  std::shared_ptr<Channel> channel;
  uint32_t stream = 0;
};

MR_TEST(ACopyWhoseOtherDevicesOwnerEndsFailsAndPoisonsAndTouchesNothing) {
  const std::unique_ptr<hal::Backend> backend = MakeCpuBackend();
  for (const uint64_t size : kSizes) {
    Owner going(*backend);
    Owner staying(*backend);
    auto withdrawn = std::make_unique<Bytes>(size);
    MR_EXPECT(going.channel->RegisterHost(Owner::kHandle, *withdrawn, false).ok());
    const Ticket made = staying.Submit(protocol::AllocRecord{.handle = Owner::kHandle, .bytes = size});
    MR_REQUIRE(staying.Completes(made));
    // A kernel that runs longer than any wait.
    const std::string& path = KernelPath();
    MR_EXPECT(staying.channel->InstallKernel(Owner::kHandle, {.request = Request(path, "gate")}).ok());
    std::atomic<uint32_t> flag{0};
    struct {
      protocol::LaunchRecord launch{};
      protocol::LaunchArg arg{};
    } gate;
    gate.launch.kernel = Owner::kHandle;
    gate.launch.arg_count = gate.launch.grid_x = gate.launch.grid_y = gate.launch.grid_z = 1;
    gate.launch.block_x = gate.launch.block_y = gate.launch.block_z = 1;
    gate.arg.size = 8;
    gate.arg.value = reinterpret_cast<uintptr_t>(&flag);
    gate.launch.header = {static_cast<uint16_t>(protocol::Opcode::kLaunch), 0, sizeof(gate), staying.stream, 0};
    MR_EXPECT(staying.channel->Submit(std::as_bytes(std::span(&gate, 1))).ticket > 0);
    const Ticket read = staying.Copy(staying, MemorySpace::kDevice, going, MemorySpace::kHost, size);
    const Ticket written = staying.Copy(going, MemorySpace::kHost, staying, MemorySpace::kDevice, size);
    MR_EXPECT(Eventually([&] { return staying.channel->FindStream(staying.stream)->Issued() == written; }));
    going.channel->Abandon(std::chrono::milliseconds(1));
    withdrawn.reset();
    flag.store(1);
    MR_REQUIRE(staying.Completes(written));
    const auto failures = staying.channel->Failures(staying.stream, 0, UINT32_MAX).intervals;
    MR_REQUIRE(failures.size() == 2);
    MR_EXPECT(failures[0].first == read && failures[0].last == read && !failures[0].has_fault);
    MR_EXPECT(failures[1].first == written && failures[1].cause == failures[0].id);
    MR_EXPECT(failures[0].status.code() == StatusCode::kDeviceLost);
    // Its destination is poisoned until it is overwritten, and the device continues.
    const auto move = [&] {
      return staying.Submit(protocol::CopyRecord{.dst_handle = Owner::kHandle,
                                                 .src_handle = Owner::kHandle,
                                                 .dst_device = staying.channel->id(),
                                                 .src_device = staying.channel->id(),
                                                 .dst_offset = 8,
                                                 .bytes = 8});
    };
    move();
    staying.Submit(protocol::FillRecord{.handle = Owner::kHandle, .element_bytes = 1, .count = size, .pattern = 5});
    MR_REQUIRE(staying.Completes(move()));
    const auto after = staying.channel->Failures(staying.stream, 0, UINT32_MAX).intervals;
    MR_REQUIRE(after.size() == 2);
    MR_EXPECT(after[1].status.code() == StatusCode::kUpstream && after[1].cause == failures[0].id);
  }
}

}  // namespace
}  // namespace millrace
