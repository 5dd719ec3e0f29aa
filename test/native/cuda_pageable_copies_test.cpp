// Copies of the CUDA backend between device memory and pageable host memory. On the fake driver, or on this machine's
// (see cuda_backend_test.cpp), where the last line prints the bandwidth.
#include <chrono>
#include <random>
#include <thread>

#include "cuda/pageable_copies.h"
#include "cuda_fixture.h"
#include "fake_controls.h"
#include "refused_threads.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr uint64_t kSlot = 2 << 20;

std::vector<std::byte> RandomBytes(uint64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count + 8);
  for (uint64_t i = 0; i < count; i += 8) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  bytes.resize(count);
  return bytes;
}

/// Like the blocking-calls thread: on a thread of its own, without a current context.
Status OnOtherThread(hal::Stream& stream, std::byte* dst, const std::byte* src, uint64_t bytes) {
  Status status;
  std::thread thread([&] { status = stream.CopyPageable(dst, src, bytes); });
  thread.join();
  return status;
}

MR_TEST(BytesGoUpAndComeBack) {
  Opened opened(0);
  MR_EXPECT(opened.device->NeedsLockedMemory());
  auto stream = opened.NewStream(0);
  Ticket ticket = 0;
  unsigned seed = 0;
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{4097}, kSlot - 1, kSlot, 2 * kSlot + 3, 9 * kSlot + 12345}) {
    auto memory = stream->Allocate(++ticket, bytes);
    MR_REQUIRE(memory.ok());
    MR_REQUIRE(Finish(*stream, ticket));
    std::byte* const address = memory.value()->address();
    // At an unaligned address.
    const std::vector<std::byte> sent = RandomBytes(bytes + 3, ++seed);
    std::vector<std::byte> seen(bytes + 8, std::byte{0x5a});
    MR_REQUIRE(OnOtherThread(*stream, address, sent.data() + 3, bytes).ok());
    MR_REQUIRE(OnOtherThread(*stream, seen.data() + 1, address, bytes).ok());
    MR_EXPECT(std::memcmp(seen.data() + 1, sent.data() + 3, bytes) == 0);
    MR_EXPECT(seen[0] == std::byte{0x5a} && seen[bytes + 1] == std::byte{0x5a});
    // The stream continues after it.
    MR_REQUIRE(stream->Free(++ticket, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, ticket));
  }
}

MR_TEST(TwoStreamsOfADeviceTakeTurns) {
  Opened opened(0);
  constexpr uint64_t kBytes = 3 * kSlot + 17;
  std::unique_ptr<hal::Stream> streams[2] = {opened.NewStream(0), opened.NewStream(1)};
  std::unique_ptr<hal::Memory> memory[2];
  std::vector<std::byte> sent[2] = {RandomBytes(kBytes, 1), RandomBytes(kBytes, 2)};
  for (int i = 0; i < 2; ++i) {
    auto allocated = streams[i]->Allocate(1, kBytes);
    MR_REQUIRE(allocated.ok());
    memory[i] = std::move(allocated).value();
    MR_REQUIRE(Finish(*streams[i], 1));
  }
  std::atomic<int> wrong{0};
  const auto run = [&](int i) {
    std::vector<std::byte> seen(kBytes);
    for (int round = 0; round < 5; ++round) {
      if (!streams[i]->CopyPageable(memory[i]->address(), sent[i].data(), kBytes).ok()) ++wrong;
      if (!streams[i]->CopyPageable(seen.data(), memory[i]->address(), kBytes).ok()) ++wrong;
      if (std::memcmp(seen.data(), sent[i].data(), kBytes) != 0) ++wrong;
    }
  };
  std::thread first(run, 0);
  std::thread second(run, 1);
  first.join();
  second.join();
  MR_EXPECT_EQ(wrong.load(), 0);
  for (int i = 0; i < 2; ++i) {
    MR_REQUIRE(streams[i]->Free(2, std::move(memory[i])).ok());
    MR_REQUIRE(Finish(*streams[i], 2));
  }
}

MR_TEST(AFailureIsToldAndTheNextCopyWorks) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  constexpr uint64_t kBytes = 6 * kSlot;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  std::byte* const address = memory.value()->address();
  const std::vector<std::byte> sent = RandomBytes(kBytes, 3);
  std::vector<std::byte> seen(kBytes);
  for (const char* failure : {"cuMemcpyAsync:3:1", "cuEventCreate:2:2"}) {
    FailCalls(failure);
    const Status status = stream->CopyPageable(address, sent.data(), kBytes);
    FailCalls("");
    // The first successful copy creates the slots and their events; later copies cannot fail there.
    const bool must_fail = std::strncmp(failure, "cuMemcpyAsync", 13) == 0;
    MR_EXPECT_EQ(status.ok(), !must_fail);
    MR_REQUIRE(stream->CopyPageable(address, sent.data(), kBytes).ok());
    MR_REQUIRE(stream->CopyPageable(seen.data(), address, kBytes).ok());
    MR_EXPECT(seen == sent);
  }
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
}

MR_TEST(WithoutLockedMemoryTheCallerCopiesAlone) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto context = cuda::Context::Retain(0);
  MR_REQUIRE(context.ok());
  constexpr uint64_t kBytes = 6 * kSlot + 77;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  std::byte* const address = memory.value()->address();
  const auto own = reinterpret_cast<cuda::CUstream>(stream->NativeHandle());
  const std::vector<std::byte> sent = RandomBytes(kBytes, 9);
  std::vector<std::byte> seen(kBytes);
  // Out of memory, and a system call that failed.
  for (const char* failure : {"cuMemHostRegister:0:2", "cuMemHostRegister:0:304"}) {
    cuda::PageableCopies pageable(context.value(), 2);
    std::memset(seen.data(), 0, kBytes);
    FailCalls(failure);
    MR_REQUIRE(pageable.Copy(own, address, sent.data(), kBytes).ok());
    MR_REQUIRE(pageable.Copy(own, seen.data(), address, kBytes).ok());
    MR_EXPECT(seen == sent);
    FailCalls("cuMemHostRegister:0:2,cuMemcpyHtoDAsync:2:1,cuMemcpyDtoHAsync:1:1");
    MR_EXPECT(!pageable.Copy(own, address, sent.data(), kBytes).ok());
    MR_EXPECT(!pageable.Copy(own, seen.data(), address, kBytes).ok());
    FailCalls("");
    MR_REQUIRE(pageable.Copy(own, address, sent.data(), kBytes).ok());
  }
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
}

MR_TEST(HelpersAreFewOnASmallMachine) {
  MR_EXPECT_EQ(cuda::PageableCopies::HelpersFor(1), 0u);
  MR_EXPECT_EQ(cuda::PageableCopies::HelpersFor(2), 1u);
  MR_EXPECT_EQ(cuda::PageableCopies::HelpersFor(8), 6u);
  MR_EXPECT_EQ(cuda::PageableCopies::HelpersFor(16), 11u);
  MR_EXPECT_EQ(cuda::PageableCopies::HelpersFor(128), 11u);
}

// Tests the helpers' part with many threads, even on a machine that would use none.
MR_TEST(ThreadsShareOneCopy) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto context = cuda::Context::Retain(0);
  MR_REQUIRE(context.ok());
  cuda::PageableCopies pageable(context.value(), 4);
  constexpr uint64_t kBytes = 20 * kSlot + 999;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  std::byte* const address = memory.value()->address();
  const auto own = reinterpret_cast<cuda::CUstream>(stream->NativeHandle());
  const std::vector<std::byte> sent = RandomBytes(kBytes, 4);
  std::vector<std::byte> seen(kBytes);
  for (int round = 0; round < 3; ++round) {
    std::memset(seen.data(), 0, kBytes);
    MR_REQUIRE(pageable.Copy(own, address, sent.data(), kBytes).ok());
    MR_REQUIRE(pageable.Copy(own, seen.data(), address, kBytes).ok());
    MR_EXPECT(seen == sent);
  }
  if (OnFake()) {
    // The copy reports the failure, whichever thread detects it, and no thread remains in it.
    FailCalls("cuMemcpyAsync:7:1");
    MR_EXPECT(!pageable.Copy(own, seen.data(), address, kBytes).ok());
    FailCalls("");
    MR_REQUIRE(pageable.Copy(own, seen.data(), address, kBytes).ok());
    MR_EXPECT(seen == sent);
  }
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
}

MR_TEST(SlotPairsWithoutAThreadAreLeftOut) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto context = cuda::Context::Retain(0);
  MR_REQUIRE(context.ok());
  constexpr uint64_t kBytes = 20 * kSlot + 999;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  std::byte* const address = memory.value()->address();
  const auto own = reinterpret_cast<cuda::CUstream>(stream->NativeHandle());
  const std::vector<std::byte> sent = RandomBytes(kBytes, 5);
  std::vector<std::byte> seen(kBytes);
  for (const int threads : {0, 2}) {
    const RefusedThreads refused("mr-pageable", threads);
    cuda::PageableCopies pageable(context.value(), 4);
    MR_REQUIRE(pageable.Copy(own, address, sent.data(), kBytes).ok());
    std::memset(seen.data(), 0, kBytes);
    MR_REQUIRE(pageable.Copy(own, seen.data(), address, kBytes).ok());
    MR_EXPECT(seen == sent);
    MR_EXPECT_EQ(refused.count(), 2);  // Each copy tries again.
  }
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
}

// Prints a figure, without expectations.
MR_TEST(HowFast) {
  if (OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  constexpr uint64_t kBytes = 1 << 30;
  auto memory = stream->Allocate(1, kBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(Finish(*stream, 1));
  std::vector<std::byte> host(kBytes, std::byte{1});
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    MR_REQUIRE(stream->CopyPageable(memory.value()->address(), host.data(), kBytes).ok());
    const auto middle = std::chrono::steady_clock::now();
    MR_REQUIRE(stream->CopyPageable(host.data(), memory.value()->address(), kBytes).ok());
    const auto end = std::chrono::steady_clock::now();
    const auto rate = [](auto span) { return kBytes / 1e9 / std::chrono::duration<double>(span).count(); };
    std::printf("  up %.1f GB/s, down %.1f GB/s\n", rate(middle - start), rate(end - middle));
  }
  MR_REQUIRE(stream->Free(2, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
}

}  // namespace
