// The CUDA backend against its contract (native/hal/hal.h; rules are cited by number): on the fake driver without
// arguments, and on this machine's own driver with kernels that were built for its GPU:
//
//   nvcc -cubin -arch=sm_90 -o cuda_kernels.cubin cuda_kernels.cu && cuda_backend_test cuda_kernels.cubin
#include <thread>
#include <vector>

#include "cuda_fixture.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

MR_TEST(EnumerateDescribesTheDevices) {
  const hal::BackendReport report = Cuda().Enumerate();
  MR_EXPECT_EQ(report.name, "cuda");
  MR_EXPECT_EQ(report.reason, "");
  MR_REQUIRE(!report.devices.empty());
  for (const hal::DeviceInfo& info : report.devices) {
    MR_EXPECT(!info.name.empty());
    MR_EXPECT(info.total_memory_bytes > 0);
    MR_EXPECT(info.compute_major >= 5);
    MR_EXPECT_EQ(info.max_threads_per_block, 1024u);
    MR_EXPECT_EQ(info.max_grid[0], 0x7fffffffu);
    MR_EXPECT_EQ(info.warp_size, 32u);
    MR_EXPECT(info.max_shared_bytes > 48u << 10);
  }
  MR_EXPECT_EQ(static_cast<int>(Cuda().Open(63, {}).status().code()), static_cast<int>(StatusCode::kUnavailable));
}

MR_TEST(FillsOfEverySizeAndCopiesBack) {
  Opened opened(0);
  MR_EXPECT(opened.device->info().greatest_priority < opened.device->info().least_priority);
  auto stream = opened.NewStream(0, opened.device->info().greatest_priority);
  Pinned host(*opened.device, 1 << 16);
  constexpr uint64_t kCount = 1000;
  auto memory = stream->Allocate(1, kCount * 8);
  MR_REQUIRE(memory.ok());
  MR_EXPECT_EQ(memory.value()->bytes(), kCount * 8);
  std::byte* address = memory.value()->address();

  const struct {
    uint32_t element_bytes;
    uint64_t pattern;
  } fills[] = {{1, 0xa5}, {2, 0xbeef}, {4, 0x12345678}, {8, 0x7777777777777777}, {8, 0x0123456789abcdef}};
  Ticket ticket = 1;
  for (const auto& fill : fills) {
    const uint64_t bytes = kCount * fill.element_bytes;
    MR_REQUIRE(stream->Fill(++ticket, address, fill.element_bytes, fill.pattern, kCount).ok());
    MR_REQUIRE(stream->Copy(++ticket, host.data, address, bytes).ok());
    MR_REQUIRE(Finish(*stream, ticket));
    int wrong = 0;
    for (uint64_t i = 0; i < kCount; ++i) {
      wrong += std::memcmp(host.data + i * fill.element_bytes, &fill.pattern, fill.element_bytes) != 0;
    }
    MR_EXPECT_EQ(wrong, 0);
  }
  // An empty operation completes its ticket too.
  MR_EXPECT(stream->Fill(++ticket, address, 8, 1, 0).ok());
  MR_EXPECT(stream->Copy(++ticket, address, address, 0).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*stream, ticket));
}

MR_TEST(EmptyAllocationsHaveAnAddress) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto memory = stream->Allocate(1, 0);
  MR_REQUIRE(memory.ok());
  MR_EXPECT(memory.value()->address() != nullptr);
  MR_EXPECT_EQ(memory.value()->bytes(), 0u);
  MR_EXPECT(stream->Free(2, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*stream, 2));
}

MR_TEST(LaunchesPassTheirParameters) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  constexpr int kCount = 3000;
  Pinned host(*opened.device, kCount * 8);
  auto* x = host.As<float>();
  float* y = x + kCount;
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
  }
  auto kernel = opened.Load("axpy");
  {
    // Parameters are read during the call only.
    float a = 2;
    int n = kCount - 1;
    void* params[] = {&y, &x, &a, &n};
    MR_REQUIRE(
        stream
            ->Launch(
                1,
                {.kernel = kernel.get(), .grid = {12, 1, 1}, .block = {256, 1, 1}, .shared_bytes = 0, .params = params})
            .ok());
    a = 1000;
    n = 0;
  }
  MR_REQUIRE(Finish(*stream, 1));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += y[i] != (i < kCount - 1 ? 1 + 2 * static_cast<float>(i) : 1);
  MR_EXPECT_EQ(wrong, 0);

  // More shared memory than the default limit, and more than the device has.
  auto sum = opened.Load("shared_sum");
  auto* out = host.As<unsigned>();
  int n = 20000;
  void* params[] = {&out, &n};
  hal::LaunchRequest request = {.kernel = sum.get(), .grid = {}, .block = {}, .shared_bytes = 80000, .params = params};
  MR_EXPECT(stream->Launch(2, request).ok());
  MR_REQUIRE(Finish(*stream, 2));
  MR_EXPECT_EQ(*out, 20000u * 19999u / 2);
  request.shared_bytes = 1 << 20;
  MR_EXPECT_EQ(static_cast<int>(stream->Launch(3, request).code()), static_cast<int>(StatusCode::kLaunchFailed));
  MR_EXPECT(stream->Nop(3).ok());
  MR_EXPECT(Finish(*stream, 3));
}

MR_TEST(BlocksOfACooperativeLaunchWaitForEachOther) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 4);
  auto* count = host.As<unsigned>();
  *count = 0;
  auto kernel = opened.Load("meet");
  auto most = kernel->MaxCooperativeBlocks(1024, 0);
  MR_REQUIRE(most.ok());
  MR_EXPECT(most.value() >= opened.device->info().multiprocessors);
  auto with_shared = kernel->MaxCooperativeBlocks(1024, 200 << 10);
  MR_EXPECT(with_shared.ok() && with_shared.value() == opened.device->info().multiprocessors);
  auto small = kernel->MaxCooperativeBlocks(1, 0);
  MR_EXPECT(small.ok() && small.value() == kernel->limits().max_cooperative_blocks);

  const auto blocks = static_cast<uint32_t>(most.value());
  void* params[] = {&count};
  hal::LaunchRequest request = {.kernel = kernel.get(), .grid = {blocks + 1, 1, 1}, .block = {1024, 1, 1}};
  request.params = params;
  request.is_cooperative = true;
  MR_EXPECT_EQ(static_cast<int>(stream->Launch(1, request).code()), static_cast<int>(StatusCode::kLaunchFailed));
  request.grid.x = blocks;
  request.block.x = 1;
  MR_EXPECT(stream->Launch(1, request).ok());
  MR_REQUIRE(Finish(*stream, 1));
  MR_EXPECT_EQ(*count, blocks);
}

MR_TEST(AKernelTellsItsLimits) {
  Opened opened(0);
  const hal::DeviceInfo& info = opened.device->info();
  const hal::KernelLimits bounded = opened.Load("bounded")->limits();
  MR_EXPECT_EQ(bounded.max_threads_per_block, 64u);
  MR_EXPECT_EQ(bounded.max_dynamic_shared_bytes, info.max_shared_bytes - 1024);
  const hal::KernelLimits sum = opened.Load("shared_sum")->limits();
  MR_EXPECT_EQ(sum.max_threads_per_block, info.max_threads_per_block);
  MR_EXPECT_EQ(sum.max_dynamic_shared_bytes, info.max_shared_bytes);
  // One and two warps; the first that fill a multiprocessor are larger than the device runs blocks of at once.
  MR_EXPECT_EQ(bounded.blocks_at_once.size(), 2u);
  const hal::KernelLimits narrow = opened.Load("narrow")->limits();
  MR_EXPECT_EQ(narrow.max_threads_per_block, 16u);
  MR_EXPECT_EQ(narrow.blocks_at_once.size(), 1u);
  MR_EXPECT(narrow.max_cooperative_blocks >= info.multiprocessors);
  MR_EXPECT_EQ(sum.blocks_at_once.size(), size_t{info.max_threads_per_block} / 32);
  for (size_t warps = 1; warps <= sum.blocks_at_once.size(); ++warps) {
    MR_EXPECT(sum.blocks_at_once[warps - 1] > 0 && warps * sum.blocks_at_once[warps - 1] <= 64);
  }
}

// Rule 3.
MR_TEST(ARefusedLaunchLeavesItsTicketOpen) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned word(*opened.device, 4);
  auto kernel = opened.Load("hold");
  auto* address = word.As<unsigned>();
  void* params[] = {&address};
  const Status status = stream->Launch(
      1, {.kernel = kernel.get(), .grid = {}, .block = {2048, 1, 1}, .shared_bytes = 0, .params = params});
  MR_EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kLaunchFailed));
  MR_EXPECT_EQ(status.driver_code(), 1);
  MR_EXPECT_EQ(stream->Completed(), 0u);
  MR_EXPECT(stream->Nop(1).ok());
  MR_EXPECT(Finish(*stream, 1));
}

MR_TEST(AKernelThatWasFoundTwiceIsUsedTwice) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 8);
  auto* x = host.As<float>();
  float* y = x + 1;
  x[0] = 3;
  y[0] = 1;
  auto module = opened.device->LoadModule(kernel_image);
  MR_REQUIRE(module.ok());
  std::vector<std::shared_ptr<hal::Kernel>> found;
  for (int i = 0; i < 100; ++i) {
    auto kernel = module.value()->FindKernel("axpy", false, false);
    MR_REQUIRE(kernel.ok());
    found.push_back(std::move(kernel).value());
  }
  float a = 2;
  int n = 1;
  void* params[] = {&y, &x, &a, &n};
  uint64_t ticket = 0;
  for (const auto& kernel : found) {
    MR_REQUIRE(
        stream
            ->Launch(
                ++ticket,
                {.kernel = kernel.get(), .grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 0, .params = params})
            .ok());
  }
  MR_REQUIRE(Finish(*stream, ticket));
  MR_EXPECT_EQ(y[0], 601.0f);
}

MR_TEST(ModulesThatDoNotFitAreRefused) {
  Opened opened(0);
  MR_EXPECT_EQ(static_cast<int>(opened.device->LoadKernel({.image = kernel_image, .entry = "absent"}).status().code()),
               static_cast<int>(StatusCode::kCompile));
  const char text[] = "this is no PTX";
  const auto bytes = std::as_bytes(std::span(text, sizeof(text) - 1));
  MR_EXPECT_EQ(static_cast<int>(opened.device->LoadKernel({.image = bytes, .entry = "axpy"}).status().code()),
               static_cast<int>(StatusCode::kCompile));
}

MR_TEST(WaitOrdersTwoStreamsOfOneDevice) {
  Opened opened(0);
  auto first = opened.NewStream(0);
  auto second = opened.NewStream(1);
  Gate gate(opened);
  Pinned host(*opened.device, 8);
  auto memory = first->Allocate(1, 8);
  MR_REQUIRE(memory.ok());
  std::byte* address = memory.value()->address();
  MR_REQUIRE(gate.Launch(*first, 2).ok());
  MR_REQUIRE(first->Fill(3, address, 8, 0x1122334455667788, 1).ok());
  MR_REQUIRE(gate.Launch(*first, 4).ok());
  MR_REQUIRE(second->Wait(1, *first, 3).ok());
  MR_REQUIRE(second->Copy(2, host.data, address, 8).ok());
  // A wait for a completed point, and one for the stream's own past, delay nothing.
  MR_REQUIRE(Finish(*first, 1));
  MR_EXPECT(second->Wait(3, *first, 1).ok());
  MR_EXPECT(second->Wait(4, *second, 2).ok());
  MR_EXPECT_EQ(second->Resolve(4).value(), 0u);
  gate.Open();
  MR_EXPECT(Finish(*second, 4));
  MR_EXPECT_EQ(*host.As<uint64_t>(), 0x1122334455667788u);
  MR_EXPECT(Finish(*first, 4));
  MR_EXPECT(first->Free(5, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*first, 5));
}

/// Two devices, or else one device opened twice. Each is on its own channel thread, and they pass a number back and
/// forth through host memory that both have registered.
MR_TEST(WaitOrdersTwoChannelThreads) {
  const uint32_t other = Cuda().Enumerate().devices.size() > 1 ? 1 : 0;
  constexpr int kRounds = 200;
  struct Side {
    std::atomic<hal::Stream*> stream{nullptr};
    std::atomic<Ticket> issued{0};
  } sides[2];
  auto* shared = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
  std::memset(shared, 0, 4096);
  std::atomic<int> done{0};
  std::atomic<int> wrong{0};

  const auto run = [&](int me, uint32_t ordinal) {
    Opened opened(ordinal);
    MR_CHECK(opened.device->RegisterHost({shared, 4096}).ok());
    {
      auto stream = opened.NewStream(me);
      Side& mine = sides[me];
      Side& theirs = sides[1 - me];
      mine.stream = stream.get();
      while (theirs.stream.load() == nullptr) std::this_thread::yield();
      auto kernel = opened.Load("axpy");
      auto* y = reinterpret_cast<float*>(shared);
      float* x = y + 1;
      Ticket ticket = 0;
      // Round r adds one to y on this device after the other's round: odd tickets wait, even ones add.
      for (int round = 1; round <= kRounds; ++round) {
        const Ticket until = 2 * static_cast<Ticket>(me == 0 ? round - 1 : round);
        while (theirs.issued.load(std::memory_order_acquire) < until) std::this_thread::yield();
        ++ticket;
        const Status waited = until == 0 ? stream->Nop(ticket) : stream->Wait(ticket, *theirs.stream.load(), until);
        float a = 1;
        int n = 1;
        void* params[] = {&y, &x, &a, &n};
        const Status launched = stream->Launch(
            ++ticket, {.kernel = kernel.get(), .grid = {}, .block = {}, .shared_bytes = 0, .params = params});
        if (!waited.ok() || !launched.ok()) ++wrong;
        mine.issued.store(ticket, std::memory_order_release);
      }
      if (!Finish(*stream, ticket)) ++wrong;
      ++done;
      // Neither returns while the other may still read this stream.
      while (done.load() < 2) std::this_thread::yield();
    }
    MR_CHECK(opened.device->UnregisterHost({shared, 4096}).ok());
  };
  reinterpret_cast<float*>(shared)[1] = 1;
  std::thread second(run, 1, other);
  std::thread first(run, 0, 0);
  first.join();
  second.join();
  MR_EXPECT_EQ(wrong.load(), 0);
  MR_EXPECT_EQ(*reinterpret_cast<float*>(shared), 2.0f * kRounds);
  std::free(shared);
}

MR_TEST(OutOfMemoryIsSaidAndPasses) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  const uint64_t total = opened.device->info().total_memory_bytes;
  const uint64_t free_bytes = opened.device->FreeBytes();
  MR_EXPECT(free_bytes > 0 && free_bytes <= total);
  const auto refused = stream->Allocate(1, total + (1 << 20)).status();
  MR_EXPECT_EQ(static_cast<int>(refused.code()), static_cast<int>(StatusCode::kOutOfMemory));
  MR_EXPECT_EQ(refused.driver_code(), 2);
  auto memory = stream->Allocate(1, 4096);
  MR_REQUIRE(memory.ok());
  MR_EXPECT(stream->Free(2, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*stream, 2));
}

MR_TEST(FaultSlotsAreZeroAndSharedByAddress) {
  Opened opened(0);
  auto slots = opened.device->AllocateFaultSlots(16);
  MR_REQUIRE(slots.ok());
  MR_EXPECT_EQ(slots.value()->bytes(), 16 * sizeof(protocol::FaultSlot));
  int set = 0;
  for (uint64_t i = 0; i < slots.value()->bytes(); ++i) set += slots.value()->address()[i] != std::byte{0};
  MR_EXPECT_EQ(set, 0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 4);
  *host.As<unsigned>() = 7;
  MR_EXPECT(stream->Copy(1, slots.value()->address(), host.data, 4).ok());
  MR_REQUIRE(Finish(*stream, 1));
  MR_EXPECT_EQ(static_cast<int>(slots.value()->address()[0]), 7);
}

// Rule 10.
MR_TEST(ObjectsOutliveTheirDevice) {
  std::shared_ptr<hal::Kernel> kernel;
  std::unique_ptr<hal::Memory> memory;
  {
    Opened opened(0);
    auto stream = opened.NewStream(0);
    kernel = opened.Load("axpy");
    auto allocated = stream->Allocate(1, 64);
    MR_REQUIRE(allocated.ok());
    memory = std::move(allocated).value();
    MR_EXPECT(Finish(*stream, 1));
  }
  memory.reset();
  kernel.reset();
  Opened again(0);
  MR_EXPECT(again.NewStream(0)->Nop(1).ok());
}

MR_TEST(HostRangesAreCountedAcrossDevices) {
  const uint32_t other = Cuda().Enumerate().devices.size() > 1 ? 1 : 0;
  auto* range = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
  Opened second(other);
  {
    Opened first(0);
    MR_EXPECT(first.device->RegisterHost({range, 4096}).ok());
    MR_EXPECT(second.device->RegisterHost({range, 4096}).ok());
  }
  // The first device closed without unregistering, which closing does; the range stays registered for the second.
  MR_EXPECT(second.device->BindChannelThread().ok());
  auto stream = second.NewStream(0);
  auto memory = stream->Allocate(1, 4096);
  MR_REQUIRE(memory.ok());
  MR_EXPECT(stream->Copy(2, memory.value()->address(), range, 4096).ok());
  MR_EXPECT(Finish(*stream, 2));
  MR_EXPECT(stream->Free(3, std::move(memory).value()).ok());
  MR_EXPECT(Finish(*stream, 3));
  MR_EXPECT(second.device->UnregisterHost({range, 4096}).ok());
  MR_EXPECT(second.device->RegisterHost({range, 4096}).ok());
  MR_EXPECT(second.device->UnregisterHost({range, 4096}).ok());
  std::free(range);
}

}  // namespace
