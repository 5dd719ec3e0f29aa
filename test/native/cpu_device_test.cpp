// Devices of the CPU backend: grids over a pool of threads, images, memory, closing, and the list of devices.
#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <set>
#include <vector>

#include "cpu/backend.h"
#include "cpu_support.h"

namespace millrace {
namespace {

MR_TEST(AGridRunsEachBlockOnceOnAllThreads) {
  auto device = OpenDevice(3);
  auto slow = LoadKernel(*device, "slow");
  std::array<std::atomic<uint32_t>, 96> counts{};
  std::array<int32_t, 96> threads{};
  Lane lane(*device);
  lane.Launch(slow, {4, 8, 3}, counts.data(), threads.data());
  lane.Nop();
  MR_REQUIRE(lane.Drained());
  for (auto& count : counts) MR_EXPECT_EQ(count.load(), 1u);
  MR_EXPECT_EQ(std::set<int32_t>(threads.begin(), threads.end()).size(), 3u);
}

MR_TEST(GridsOfManyStreamsShareThePool) {
  constexpr uint32_t kBlocks = 300;
  constexpr uint32_t kLaunches = 10;
  auto device = OpenDevice(3);
  auto busy = LoadKernel(*device, "busy");
  std::vector<std::vector<std::atomic<uint32_t>>> counts;
  std::vector<Lane> lanes;
  for (int32_t i = 0; i < 6; ++i) {
    counts.emplace_back(kBlocks);
    lanes.emplace_back(*device, -i % 2);
  }
  for (uint32_t launch = 0; launch < kLaunches; ++launch) {
    for (size_t i = 0; i < lanes.size(); ++i) lanes[i].Launch(busy, {kBlocks, 1, 1}, counts[i].data());
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    MR_REQUIRE(lanes[i].Drained());
    for (auto& count : counts[i]) MR_EXPECT_EQ(count.load(), kLaunches);
  }
}

MR_TEST(ALongGridLetsOtherStreamsIn) {
  auto device = OpenDevice(1);
  auto slow = LoadKernel(*device, "slow");
  auto affine = LoadKernel(*device, "affine");
  std::vector<std::atomic<uint32_t>> counts(400);
  std::vector<int32_t> threads(400);
  uint32_t word = 0;
  Lane grid(*device);
  Lane other(*device);
  grid.Launch(slow, {400, 1, 1}, counts.data(), threads.data());
  MR_REQUIRE(Eventually([&] { return counts[0].load() == 1; }));
  other.Launch(affine, {1, 1, 1}, &word, 0u, 1u);
  MR_REQUIRE(other.Drained());
  MR_EXPECT_EQ(grid.stream->Completed(), 0u);
}

MR_TEST(PoolThreadsAreNicerThanTheirProcess) {
  auto device = OpenDevice();
  auto whoami = LoadKernel(*device, "whoami");
  int32_t thread = 0;
  Lane lane(*device);
  lane.Launch(whoami, {1, 1, 1}, &thread);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) >= 10);
}

MR_TEST(SharedMemoryIsAlignedAndGrows) {
  auto device = OpenDevice();
  auto shared = LoadKernel(*device, "shared");
  Lane lane(*device);
  for (uint32_t bytes : {1u, 1000u, 48u << 10}) {
    uint32_t aligned = 0;
    lane.shared_bytes = bytes;
    lane.Launch(shared, {1, 1, 1}, &aligned);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(aligned, 1u);
  }
}

MR_TEST(AnImageWithoutItsSymbolsIsRefused) {
  auto device = OpenDevice();
  const auto code = [&](const std::string& path, const char* entry) {
    return device->LoadKernel(Request(path, entry)).status().code();
  };
  MR_EXPECT(code(KernelPath(), "affine") == StatusCode::kOk);
  MR_EXPECT(code("/nonexistent/kernel.so", "affine") == StatusCode::kInternal);
  MR_EXPECT(code(KernelPath(), "absent") == StatusCode::kInternal);
  MR_EXPECT(code(KernelPath(), "bare") == StatusCode::kInternal);
  MR_EXPECT(code(KernelPath(), "wide") == StatusCode::kUnsupported);
}

MR_TEST(AKernelStaysLoadedWhileItsLaunchIsPending) {
  auto device = OpenDevice();
  std::atomic<uint32_t> flag{0};
  uint32_t word = 0;
  Lane lane(*device);
  // An image of its own, which nothing else keeps loaded.
  const std::string copy = KernelPath() + ".copy";
  {
    const std::string command = "cp " + KernelPath() + ' ' + copy;
    MR_REQUIRE(std::system(command.c_str()) == 0);
    lane.Launch(device->LoadKernel(Request(copy, "gate")).value(), {1, 1, 1}, &flag);
    lane.Launch(device->LoadKernel(Request(copy, "affine")).value(), {1, 1, 1}, &word, 0u, 3u);
  }
  const auto is_loaded = [&] {
    void* library = dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD);
    return library != nullptr && dlclose(library) == 0;
  };
  MR_EXPECT(is_loaded());
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 3u);
  MR_EXPECT(Eventually([&] { return !is_loaded(); }));
}

MR_TEST(MemoryIsAlignedBudgetedAndReused) {
  auto device = OpenDevice(2, 8 << 20);
  Lane lane(*device);
  const auto allocate = [&](uint64_t bytes) { return lane.stream->Allocate(lane.last + 1, bytes); };

  auto nothing = allocate(0);
  ++lane.last;
  auto also_nothing = allocate(0);
  ++lane.last;
  MR_REQUIRE(nothing.ok() && also_nothing.ok());
  MR_EXPECT(nothing.value()->address() != also_nothing.value()->address());

  auto large = allocate(5 << 20);
  ++lane.last;
  MR_REQUIRE(large.ok());
  MR_EXPECT_EQ(reinterpret_cast<uintptr_t>(large.value()->address()) % 256, 0u);
  MR_EXPECT_EQ(large.value()->bytes(), 5u << 20);
  std::memset(large.value()->address(), 1, 5 << 20);
  MR_EXPECT(allocate(5 << 20).status().code() == StatusCode::kOutOfMemory);
  MR_EXPECT(allocate(~0ull).status().code() == StatusCode::kOutOfMemory);

  const std::byte* address = large.value()->address();
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(large.value())).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(device->FreeBytes() >= (7u << 20));
  auto again = allocate(5 << 20);
  ++lane.last;
  MR_REQUIRE(again.ok());
  MR_EXPECT(again.value()->address() == address);
}

MR_TEST(MemoryIsFreedInStreamOrder) {
  auto device = OpenDevice(2, 8 << 20);
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane lane(*device);
  auto memory = lane.stream->Allocate(++lane.last, 6 << 20);
  MR_REQUIRE(memory.ok());
  lane.Launch(gate, {1, 1, 1}, &flag);
  MR_EXPECT(lane.stream->Free(++lane.last, std::move(memory.value())).ok());
  MR_EXPECT(lane.stream->Allocate(lane.last + 1, 6 << 20).status().code() == StatusCode::kOutOfMemory);
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(lane.stream->Allocate(++lane.last, 6 << 20).ok());
}

MR_TEST(FaultSlotsBeginAsZeros) {
  auto device = OpenDevice();
  auto slots = device->AllocateFaultSlots(3000);
  MR_REQUIRE(slots.ok());
  MR_EXPECT_EQ(slots.value()->bytes(), 3000u * 64u);
  const auto* first = slots.value()->address();
  MR_EXPECT(std::all_of(first, first + slots.value()->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
}

MR_TEST(ClosingDrainsWhatWasSubmitted) {
  auto device = OpenDevice();
  auto slow = LoadKernel(*device, "slow");
  std::array<std::atomic<uint32_t>, 8> counts{};
  std::array<int32_t, 8> threads{};
  Lane a(*device);
  Lane b(*device);
  for (int i = 0; i < 5; ++i) a.Launch(slow, {8, 1, 1}, counts.data(), threads.data());
  b.Wait(a, a.last);
  device->Close();
  MR_EXPECT_EQ(a.stream->Completed(), a.last);
  MR_EXPECT_EQ(b.stream->Completed(), b.last);
  MR_EXPECT_EQ(counts[7].load(), 5u);
}

MR_TEST(AnIdleDeviceBurnsNoProcessorTime) {
  auto device = OpenDevice(4);
  auto affine = LoadKernel(*device, "affine");
  uint32_t word = 0;
  Lane lane(*device);
  lane.Launch(affine, {1, 1, 1}, &word, 1u, 1u);
  MR_REQUIRE(lane.Drained());
  usleep(20000);  // Past any spinning.
  const clock_t before = clock();
  usleep(200000);
  MR_EXPECT(clock() - before < CLOCKS_PER_SEC / 50);
}

MR_TEST(TheBackendListsAndOpensItsDevices) {
  setenv("MILLRACE_CPU_DEVICES", "2", 1);
  auto backend = MakeCpuBackend();
  const hal::BackendReport report = backend->Enumerate();
  MR_REQUIRE(report.devices.size() == 2);
  MR_EXPECT_EQ(report.devices[1].ordinal, 1u);
  MR_EXPECT(!report.devices[0].name.empty() && report.devices[0].total_memory_bytes > 0);
  MR_EXPECT(report.devices[0].multiprocessors >= 2);
  auto device = backend->Open(1, {});
  MR_REQUIRE(device.ok());
  MR_EXPECT_EQ(device.value()->info().ordinal, 1u);

  for (const char* text : {"0", "17", "two", "1x"}) {
    setenv("MILLRACE_CPU_DEVICES", text, 1);
    const hal::BackendReport refused = MakeCpuBackend()->Enumerate();
    MR_EXPECT(refused.devices.empty() && !refused.reason.empty() && !refused.help.empty());
  }
  unsetenv("MILLRACE_CPU_DEVICES");
  MR_EXPECT_EQ(MakeCpuBackend()->Enumerate().devices.size(), 1u);
}

}  // namespace
}  // namespace millrace

MR_TEST_MAIN()
