// Devices of the CPU backend: grids over a pool of threads, images, timestamps, peers, closing, and the
// list of devices.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
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
  MR_EXPECT(code("/nonexistent/kernel.so", "affine") == StatusCode::kUnavailable);
  MR_EXPECT(code(KernelPath(), "absent") == StatusCode::kInternal);
  MR_EXPECT(code(KernelPath(), "bare") == StatusCode::kInternal);
  MR_EXPECT(code(KernelPath(), "wide") == StatusCode::kUnsupported);
}

MR_TEST(AStructIsPassedByValueAndHasTheSizeOfTheImage) {
  auto device = OpenDevice();
  Lane lane(*device);
  auto five = device->LoadKernel(Request(KernelPath(), "five")).value();
  uint32_t word = 0;
  uint32_t* address = &word;
  std::array<uint32_t, 6> values{1, 2, 3, 4, 5, 99};
  uint32_t factor = 10;
  std::array<void*, 3> params{&address, values.data(), &factor};
  const auto launch = [&](std::span<void* const> given, std::span<const hal::WideParam> wide) {
    const Status status = lane.stream->Launch(lane.last + 1, {.kernel = five.get(), .params = given, .wide = wide});
    if (status.ok()) ++lane.last;
    return status.code();
  };
  const auto with = [](uint32_t index, uint32_t bytes) { return std::vector<hal::WideParam>{{index, bytes}}; };
  MR_EXPECT(launch(params, with(1, 20)) == StatusCode::kOk);
  values[0] = 0;  // The launch has copied it.
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 150u);
  for (const auto& wrong : {with(1, 16), with(1, 24), with(2, 20), with(3, 20), std::vector<hal::WideParam>{}}) {
    MR_EXPECT(launch(params, wrong) == StatusCode::kLaunchFailed);
  }
  MR_EXPECT(launch(std::span(params).first(2), with(1, 20)) == StatusCode::kLaunchFailed);
}

MR_TEST(EveryLoadOfAnImageHasVariablesOfItsOwn) {
  auto device = OpenDevice();
  auto other = OpenDevice();
  const auto load = [](hal::Device& on) {
    return on.LoadModule(std::as_bytes(std::span(KernelPath().data(), KernelPath().size()))).value();
  };
  const auto first = load(*device);
  const auto second = load(*device);
  const auto third = load(*other);
  uint32_t seen[3] = {};
  Lane lane(*device);
  Lane there(*other);
  const auto count = first->FindKernel("count", false, false).value();
  lane.Launch(count, {1, 1, 1}, &seen[0]);
  lane.Launch(first->FindKernel("count", false, false).value(), {1, 1, 1}, &seen[0]);
  lane.Launch(count, {1, 1, 1}, &seen[0]);
  lane.Launch(second->FindKernel("count", false, false).value(), {1, 1, 1}, &seen[1]);
  there.Launch(third->FindKernel("count", false, false).value(), {1, 1, 1}, &seen[2]);
  MR_REQUIRE(lane.Drained() && there.Drained());
  MR_EXPECT_EQ(seen[0], 43u);
  MR_EXPECT_EQ(seen[1], 41u);
  MR_EXPECT_EQ(seen[2], 41u);

  const auto launches = first->FindVariable("launches").value();
  MR_EXPECT_EQ(launches->bytes(), sizeof(uint32_t));
  MR_EXPECT_EQ(*reinterpret_cast<uint32_t*>(launches->address()), 43u);
  MR_EXPECT_EQ(*reinterpret_cast<uint32_t*>(second->FindVariable("launches").value()->address()), 41u);
  MR_EXPECT(first->FindVariable("fixed").status().code() == StatusCode::kArgument);
  MR_EXPECT(first->FindVariable("box::fixed").status().code() == StatusCode::kUnsupported);
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(KernelPath()).parent_path())) {
    MR_EXPECT(file.path().extension() != ".new");
  }
}

MR_TEST(AVariableKeepsItsImageLoaded) {
  auto device = OpenDevice();
  const auto variable = [&] {
    const auto module = device->LoadModule(std::as_bytes(std::span(KernelPath().data(), KernelPath().size()))).value();
    return std::move(module->FindVariable("launches")).value();
  }();
  MR_EXPECT_EQ(*reinterpret_cast<uint32_t*>(variable->address()), 40u);
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
  // The loaded file is a copy.
  const auto is_loaded = [&] {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(copy + '.') != std::string::npos) return true;
    }
    return false;
  };
  MR_EXPECT(is_loaded());
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT_EQ(word, 3u);
  MR_EXPECT(Eventually([&] { return !is_loaded(); }));
}

MR_TEST(ATimestampIsTakenWhenItsStreamReachesIt) {
  auto device = OpenDevice();
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  auto before = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
  auto after = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
  Lane lane(*device);
  MR_EXPECT(lane.stream->Record(++lane.last, *before).ok());
  lane.Launch(gate, {1, 1, 1}, &flag);
  MR_EXPECT(lane.stream->Record(++lane.last, *after).ok());
  // Complete with its ticket, and not before.
  MR_EXPECT_EQ(lane.stream->Completed(), 1u);
  MR_EXPECT(device->Elapsed(*before, *after).status().code() == StatusCode::kState);
  MR_EXPECT(device->Elapsed(*before, *before).ok());
  const auto start = std::chrono::steady_clock::now();
  usleep(20000);
  const std::chrono::duration<double, std::milli> closed = std::chrono::steady_clock::now() - start;
  flag.store(1);
  MR_REQUIRE(lane.Drained());
  const double elapsed = device->Elapsed(*before, *after).value();
  MR_EXPECT(elapsed >= closed.count());
  MR_EXPECT(elapsed < 60000);
  MR_EXPECT_EQ(device->Elapsed(*after, *before).value(), -elapsed);
  MR_EXPECT_EQ(device->Elapsed(*after, *after).value(), 0.0);
}

MR_TEST(AnEventMayGoBeforeItIsReached) {
  auto device = OpenDevice();
  auto gate = LoadKernel(*device, "gate");
  std::atomic<uint32_t> flag{0};
  Lane lane(*device);
  lane.Launch(gate, {1, 1, 1}, &flag);
  {
    auto event_handle = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
    MR_EXPECT(lane.stream->Record(++lane.last, *event_handle).ok());
  }
  flag.store(1);
  MR_EXPECT(lane.Drained());
}

MR_TEST(NothingIsSharedWithOtherProcesses) {
  auto device = OpenDevice();
  Lane lane(*device);
  auto event_handle = std::move(device->CreateEvent(protocol::EventKind::kTiming).value());
  const auto is_refused = [](Status status) { return status.code() == StatusCode::kUnsupported; };
  MR_EXPECT(is_refused(device->CreateEvent(protocol::EventKind::kInterprocess).status()));
  MR_EXPECT(is_refused(device->ExportEvent(*event_handle).status()));
  MR_EXPECT(is_refused(device->OpenEvent({}).status()));
  MR_EXPECT(is_refused(device->AllocateInterprocess(1).status()));
  MR_EXPECT(is_refused(device->OpenMemory({}, 1).status()));
  MR_EXPECT(is_refused(lane.stream->WaitEvent(1, *event_handle)));
  Sink sink;
  MR_EXPECT(is_refused(device->CreateStream({.foreign = 0, .slot = &sink.slot(), .sink = &sink}).status()));
  MR_EXPECT(!device->NeedsLockedMemory());
}

MR_TEST(EveryStreamHasAHandleOfItsOwn) {
  auto one = OpenDevice();
  auto two = OpenDevice();
  std::vector<Lane> lanes;
  for (int i = 0; i < 50; ++i) lanes.emplace_back(i % 2 == 0 ? *one : *two);
  std::set<uint64_t> handles;
  for (const Lane& lane : lanes) handles.insert(lane.stream->NativeHandle());
  MR_EXPECT_EQ(handles.size(), lanes.size());
  MR_EXPECT(!handles.contains(0));
  MR_EXPECT_EQ(lanes[0].stream->NativeHandle(), lanes[0].stream->NativeHandle());
}

MR_TEST(ADeviceIsItsOwnPeerAndRemembersWhatOthersWereGranted) {
  setenv("MILLRACE_CPU_DEVICES", "2", 1);
  auto backend = MakeCpuBackend();
  auto device = std::move(backend->Open(1, {}).value());
  auto other = std::move(backend->Open(0, {}).value());
  unsetenv("MILLRACE_CPU_DEVICES");
  for (protocol::PeerWhat what : {protocol::PeerWhat::kMemory, protocol::PeerWhat::kPool}) {
    const hal::PeerState self = device->Peer(1, what).value();
    MR_EXPECT(self.can_grant && self.is_granted);
    MR_EXPECT(device->SetPeer(1, what, true).ok() && device->SetPeer(1, what, false).ok());
    MR_EXPECT(device->Peer(1, what).value().is_granted);
    const hal::PeerState peer = device->Peer(0, what).value();
    MR_EXPECT(peer.can_grant && !peer.is_granted);
    MR_EXPECT(device->SetPeer(0, what, true).ok());
    MR_EXPECT(device->Peer(0, what).value().is_granted && !other->Peer(1, what).value().is_granted);
    MR_EXPECT(device->SetPeer(0, what, false).ok());
    MR_EXPECT(!device->Peer(0, what).value().is_granted);
    MR_EXPECT(!device->Peer(hal::PeerGrants::kMaxDevices, what).value().can_grant);
    MR_EXPECT(device->SetPeer(hal::PeerGrants::kMaxDevices, what, true).code() == StatusCode::kUnsupported);
  }
  MR_EXPECT(device->ProbePeer(*other).value() == protocol::PeerRoute::kDirect);
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
