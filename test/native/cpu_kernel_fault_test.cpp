// Kernels that have to stop: their launch reports it, and other work continues.
#include <sys/wait.h>

#include <climits>
#include <csignal>

#include "cpu/dynamic_parallelism.h"
#include "cpu/kernel_fault.h"
#include "cpu_support.h"

namespace millrace {
namespace {

using cpu::KernelFault;

uint32_t What(KernelFault fault) {
  return static_cast<uint32_t>(fault);
}

MR_TEST(AStackThatOverflowsFailsItsLaunch) {
  auto device = OpenDevice(2);
  auto overflow = LoadKernel(*device, "overflow");
  auto affine = LoadKernel(*device, "affine");
  Lane lane(*device);
  Lane other(*device);
  uint32_t word = 20;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::atomic<uint32_t>> counts(8);
    uint32_t block = 5;
    void* address = counts.data();
    void* params[] = {&address, &block};
    const hal::LaunchRequest request{.kernel = overflow.get(), .grid = {8, 1, 1}, .params = params, .kernel_id = 3};
    MR_EXPECT(lane.stream->Launch(++lane.last, request).ok());
    const Ticket failed = lane.last;
    lane.Launch(affine, {1, 1, 1}, &word, 1u, 1u);
    MR_REQUIRE(lane.Drained());
    const auto failures = lane.sink->failures();
    MR_REQUIRE(failures.size() == static_cast<size_t>(round + 1));
    MR_EXPECT_EQ(failures.back().ticket, failed);
    MR_EXPECT(failures.back().code == StatusCode::kLaunchFailed);
    MR_EXPECT_EQ(failures.back().kernel, 3u);
    MR_EXPECT_EQ(failures.back().report.parameter, cpu::kKernelFaultParameter);
    MR_EXPECT_EQ(failures.back().report.dimension, What(KernelFault::kStack));
    MR_EXPECT_EQ(failures.back().report.index, int64_t{8} << 20);
    MR_EXPECT_EQ(failures.back().report.block_x, 5u);
    MR_EXPECT_EQ(counts[5].load(), 1u);
    for (auto& count : counts) MR_EXPECT(count.load() <= 1);
  }
  MR_EXPECT_EQ(word, 40u);
  MR_REQUIRE(other.Drained());
  MR_EXPECT(other.sink->failures().empty());
}

// What the processors do differently: only x64 does not report a non-canonical address, and only its divisions trap.
#if defined(__x86_64__)
constexpr KernelFault kNotCanonical = KernelFault::kNoAddress;
constexpr int kQuotientByZero = -1;
constexpr int kRemainderByZero = -1;
#else
constexpr KernelFault kNotCanonical = KernelFault::kAddress;
constexpr int kQuotientByZero = 0;
constexpr int kRemainderByZero = 7;
#endif

MR_TEST(MemoryThatIsNotThereAndTrapsAreToldAsLosses) {
  auto device = OpenDevice(2);
  auto stray = LoadKernel(*device, "stray");
  auto trap = LoadKernel(*device, "trap", true);  // Runs on the thread that launches it.
  Lane lane(*device);
  lane.Launch(stray, {1, 1, 1}, uintptr_t{0x10});
  lane.Launch(stray, {1, 1, 1}, uintptr_t{1} << 60);
  lane.Launch(trap, {1, 1, 1});
  MR_REQUIRE(lane.Drained());
  const auto failures = lane.sink->failures();
  MR_REQUIRE(failures.size() == 3);
  for (const auto& failure : failures) MR_EXPECT(failure.code == StatusCode::kDeviceLost);
  MR_EXPECT_EQ(failures[0].report.dimension, What(KernelFault::kAddress));
  MR_EXPECT_EQ(failures[0].report.index, 0x10);
  MR_EXPECT_EQ(failures[1].report.dimension, What(kNotCanonical));
  MR_EXPECT_EQ(failures[2].report.dimension, What(KernelFault::kInstruction));
}

MR_TEST(AKernelTakesNoMoreStacksThanThereIsRoomFor) {
  auto device = OpenDevice(2);
  auto greedy = LoadKernel(*device, "greedy");
  Lane lane(*device);
  std::atomic<uint32_t> taken{0};
  void* address = &taken;
  void* params[] = {&address};
  for (int round = 0; round < 3; ++round) {
    taken = 0;
    MR_EXPECT(lane.stream->Launch(++lane.last, {.kernel = greedy.get(), .block = {64, 1, 1}, .params = params}).ok());
    MR_REQUIRE(lane.Drained());
    // At most 1 GiB: 1, 2, 4 to 1024 of 1 MiB.
    MR_EXPECT_EQ(taken.load(), 11);
  }
  MR_REQUIRE(lane.sink->failures().size() == 3);
  MR_EXPECT_EQ(lane.sink->failures()[0].report.dimension, What(KernelFault::kMemory));
  MR_EXPECT_EQ(lane.sink->failures()[0].report.index, int64_t{2} << 30);
}

MR_TEST(DivisionsWithoutAResultGoOn) {
  auto device = OpenDevice(2);
  Lane lane(*device);
  int results[2];
  for (const bool is_light : {false, true}) {
    auto quotient = LoadKernel(*device, "quotient", is_light);
    lane.Launch(quotient, {1, 1, 1}, &results[0], 7, 0);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(results[0], kQuotientByZero);
    MR_EXPECT_EQ(results[1], kRemainderByZero);
    lane.Launch(quotient, {1, 1, 1}, &results[0], INT_MIN, -1);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(results[0], INT_MIN);
    MR_EXPECT_EQ(results[1], 0);
  }
  MR_EXPECT(lane.sink->failures().empty());
}

MR_TEST(ABlockOfACooperativeLaunchThatOverflowsLeavesTheGrid) {
  auto device = OpenDevice(2);
  auto overflow = LoadKernel(*device, "overflow");
  Lane lane(*device);
  std::vector<std::atomic<uint32_t>> counts(6);
  MR_REQUIRE(lane.LaunchTogether(overflow, {6, 1, 1}, counts.data(), 4u).ok());
  MR_REQUIRE(lane.Drained());
  MR_REQUIRE(lane.sink->failures().size() == 1);
  MR_EXPECT_EQ(lane.sink->failures()[0].report.block_x, 4u);
}

MR_TEST(WhatAKernelLaunchedAndOverflowsFailsTheLaunchOfTheHost) {
  auto device = OpenDevice(2);
  const hal::KernelRequest request{std::as_bytes(std::span(KernelPath().data(), KernelPath().size())), "ruinous", false,
                                   true};
  auto ruinous = device->LoadKernel(request).value();
  Lane lane(*device);
  std::vector<std::atomic<uint32_t>> counts(2);
  protocol::FaultSlot slot{};
  uint32_t fault = 0;
  lane.Launch(ruinous, {1, 1, 1}, counts.data(), static_cast<void*>(nullptr), 0u, &slot, &fault);
  MR_REQUIRE(lane.Drained());
  MR_REQUIRE(lane.sink->failures().size() == 1);
  MR_EXPECT(lane.sink->failures()[0].code == StatusCode::kLaunchFailed);
}

// Whether the process, a child, ends by the signal. A sanitizer's own handler reports the signal and exits.
bool IsEndedBy(int signal, void (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (WIFEXITED(status) && signal != 0) return WEXITSTATUS(status) != 0;
#endif
  return (WIFSIGNALED(status) ? WTERMSIG(status) : 0) == signal;
}

volatile int* Nowhere() {
  volatile uintptr_t address = 0x10;
  return reinterpret_cast<volatile int*>(address);
}

void RunOne() {
  auto device = OpenDevice(2);
  auto quotient = LoadKernel(*device, "quotient");
  int results[2];
  Lane lane(*device);
  lane.Launch(quotient, {1, 1, 1}, &results[0], 7, 0);
  MR_REQUIRE(lane.Drained());
}

MR_TEST(AFaultOutsideOfKernelsEndsTheProcessAsBefore) {
  MR_EXPECT(IsEndedBy(SIGSEGV, [] {
    RunOne();
    *Nowhere() = 1;
  }));
  MR_EXPECT(IsEndedBy(SIGFPE, [] {
    RunOne();
    raise(SIGFPE);
  }));
}

MR_TEST(HandlersThatWereThereBeforeAreCalled) {
  MR_EXPECT(IsEndedBy(0, [] {
    struct sigaction own {};
    own.sa_handler = [](int) { _exit(0); };
    sigaction(SIGSEGV, &own, nullptr);
    RunOne();
    *Nowhere() = 1;
    raise(SIGKILL);
  }));
}

}  // namespace
}  // namespace millrace
