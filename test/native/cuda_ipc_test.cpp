// Memory and events shared by two processes, on the fake driver or on this machine's (see cuda_backend_test.cpp). The
// driver does not survive a fork, so the case with two processes comes first and forks before using it.
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_fixture.h"
#include "fake_controls.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT
using protocol::EventKind;

constexpr uint64_t kSharedBytes = 1 << 20;

/// One end of two pipes.
struct Line {
  int in;
  int out;

  template <typename T>
  bool Send(const T& value) const {
    return write(out, &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value));
  }
  template <typename T>
  bool Receive(T* value) const {
    return read(in, value, sizeof(*value)) == static_cast<ssize_t>(sizeof(*value));
  }
};

/// Opens the other process's exports, waits for its event, reads, writes, and closes them.
void BeTheOther(const Line& line) {
  hal::IpcHandle memory_handle;
  hal::IpcHandle exported_event;
  MR_REQUIRE(line.Receive(&memory_handle) && line.Receive(&exported_event));
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, kSharedBytes);
  auto memory = opened.device->OpenMemory(memory_handle, kSharedBytes);
  auto event_handle = opened.device->OpenEvent(exported_event);
  MR_REQUIRE(memory.ok() && event_handle.ok());
  MR_EXPECT_EQ(memory.value()->bytes(), kSharedBytes);
  std::byte* const address = memory.value()->address();
  MR_REQUIRE(stream->WaitEvent(1, *event_handle.value()).ok());
  MR_REQUIRE(stream->Copy(2, host.data, address, kSharedBytes).ok());
  MR_EXPECT_EQ(stream->Resolve(2).value(), 0u);  // It is held there.
  MR_REQUIRE(line.Send('w'));
  MR_REQUIRE(Finish(*stream, 2));
  int wrong = 0;
  for (uint64_t i = 0; i < kSharedBytes / 4; ++i) wrong += host.As<unsigned>()[i] != 0x1234u;
  MR_EXPECT_EQ(wrong, 0);
  MR_REQUIRE(stream->Fill(3, address, 4, 0x5678, kSharedBytes / 4).ok());
  MR_REQUIRE(stream->Record(4, *event_handle.value()).ok());
  {
    // Not closed while the device works, though its last use is over; and not this process's to count or to use again.
    auto held = opened.NewStream(1);
    Gate gate(opened);
    MR_REQUIRE(gate.Launch(*held, 1).ok());
    const int frees = OnFake() ? Frees(0) : 0;
    MR_REQUIRE(stream->Free(5, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, 5));
    MR_EXPECT_EQ(opened.device->KeptBytes(), 0u);
    if (OnFake()) {
      const int questions = Questions(0);
      MR_EXPECT(Eventually([&] { return Questions(0) >= questions + 3; }));
      MR_EXPECT_EQ(Frees(0), frees);
    }
    gate.Open();
    MR_REQUIRE(Finish(*held, 1));
    MR_EXPECT(Eventually([&] { return !OnFake() || Frees(0) == frees + 1; }));
    MR_EXPECT(!OnFake() || WaitingFrees(0) == 0);
  }
  // It can be opened again.
  memory = opened.device->OpenMemory(memory_handle, kSharedBytes);
  MR_REQUIRE(memory.ok());
  MR_REQUIRE(stream->Free(6, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, 6));
  if (OnFake()) {
    // An older mapping here may occupy the address once.
    const int frees = Frees(0);
    FailCalls("cuIpcOpenMemHandle:1:208");
    memory = opened.device->OpenMemory(memory_handle, kSharedBytes);
    FailCalls("");
    MR_REQUIRE(memory.ok());
    MR_EXPECT_EQ(Frees(0), frees + 1);
    MR_REQUIRE(stream->Free(7, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, 7));
  }
  MR_REQUIRE(line.Send('d'));
  char last = 0;
  MR_REQUIRE(line.Receive(&last));
}

MR_TEST(TwoProcessesShareMemoryAndAnEvent) {
  int there[2];
  int back[2];
  MR_REQUIRE(pipe(there) == 0 && pipe(back) == 0);
  const Line mine = {back[0], there[1]};
  const Line theirs = {there[0], back[1]};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    BeTheOther(theirs);
    std::fflush(stdout);
    _exit(FailedExpectations() == 0 ? 0 : 1);
  }
  {
    Opened opened(0);
    auto stream = opened.NewStream(0);
    Gate gate(opened);
    Pinned host(*opened.device, kSharedBytes);
    auto memory = opened.device->AllocateInterprocess(kSharedBytes);
    auto event_handle = opened.device->CreateEvent(EventKind::kInterprocess);
    MR_REQUIRE(memory.ok() && event_handle.ok());
    MR_EXPECT_EQ(memory.value()->bytes(), kSharedBytes);
    std::byte* const address = memory.value()->address();
    MR_REQUIRE(gate.Launch(*stream, 1).ok());
    MR_REQUIRE(stream->Fill(2, address, 4, 0x1234, kSharedBytes / 4).ok());
    MR_REQUIRE(stream->Record(3, *event_handle.value()).ok());
    auto memory_handle = opened.device->ExportMemory(*memory.value());
    auto exported_event = opened.device->ExportEvent(*event_handle.value());
    MR_REQUIRE(memory_handle.ok() && exported_event.ok());
    // A process cannot open its own exports.
    MR_EXPECT_EQ(Code(opened.device->OpenMemory(memory_handle.value(), kSharedBytes).status()),
                 static_cast<int>(StatusCode::kUnsupported));
    MR_EXPECT_EQ(Code(opened.device->OpenEvent(exported_event.value()).status()),
                 static_cast<int>(StatusCode::kUnsupported));
    MR_REQUIRE(mine.Send(memory_handle.value()) && mine.Send(exported_event.value()));
    char said = 0;
    MR_REQUIRE(mine.Receive(&said) && said == 'w');
    gate.Open();
    MR_REQUIRE(mine.Receive(&said) && said == 'd');
    MR_REQUIRE(stream->WaitEvent(4, *event_handle.value()).ok());
    MR_REQUIRE(stream->Copy(5, host.data, address, kSharedBytes).ok());
    MR_REQUIRE(Finish(*stream, 5));
    int wrong = 0;
    for (uint64_t i = 0; i < kSharedBytes / 4; ++i) wrong += host.As<unsigned>()[i] != 0x5678u;
    MR_EXPECT_EQ(wrong, 0);
    MR_REQUIRE(stream->Free(6, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, 6));
    MR_REQUIRE(mine.Send('e'));
  }
  int status = 0;
  MR_REQUIRE(waitpid(child, &status, 0) == child);
  MR_EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

MR_TEST(SharedMemoryIsFreedBehindItsLastUseWithoutHoldingUpTheChannel) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto other = opened.NewStream(1);
  Gate gate(opened);
  // A device's whole memory less what this leaves is not asked for: the sum shows whether it was freed.
  constexpr uint64_t kLarge = 256 << 20;
  const uint64_t before = opened.device->FreeBytes();
  auto memory = opened.device->AllocateInterprocess(kLarge);
  MR_REQUIRE(memory.ok());
  MR_EXPECT_EQ(before - opened.device->FreeBytes(), kLarge);
  MR_REQUIRE(gate.Launch(*stream, 1).ok());
  MR_REQUIRE(stream->Fill(2, memory.value()->address(), 1, 1, 64).ok());
  MR_REQUIRE(stream->Free(3, std::move(memory).value()).ok());
  // The call came back while the gate is shut; so does work of other streams.
  MR_REQUIRE(other->Nop(1).ok());
  MR_REQUIRE(Finish(*other, 1));
  MR_EXPECT_EQ(stream->Resolve(3).value(), 0u);
  MR_EXPECT(before - opened.device->FreeBytes() >= kLarge);
  gate.Open();
  MR_REQUIRE(Finish(*stream, 3));
  MR_EXPECT(Eventually([&] { return opened.device->FreeBytes() == before; }));
}

MR_TEST(AllocatingTakesBackWhatIsFreedLate) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  const uint64_t most = opened.device->FreeBytes() / (2 << 20) * (2 << 20);
  // Half of it in the pool, the rest as separate allocations.
  MR_REQUIRE(opened.device->SetReleaseThreshold(UINT64_MAX).ok());
  auto pooled = stream->Allocate(1, most / 2);
  MR_REQUIRE(pooled.ok());
  MR_REQUIRE(stream->Free(2, std::move(pooled).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
  Ticket ticket = 2;
  for (int round = 0; round < 4; ++round) {
    auto memory = opened.device->AllocateInterprocess(most);
    MR_REQUIRE(memory.ok());
    MR_REQUIRE(stream->Free(++ticket, std::move(memory).value()).ok());
    MR_REQUIRE(Finish(*stream, ticket));
  }
  const auto refused = opened.device->AllocateInterprocess(2 * most).status();
  MR_EXPECT_EQ(Code(refused), static_cast<int>(StatusCode::kOutOfMemory));
  MR_EXPECT_EQ(Code(opened.device->AllocateInterprocess(UINT64_MAX).status()),
               static_cast<int>(StatusCode::kOutOfMemory));
  MR_REQUIRE(opened.device->SetReleaseThreshold(0).ok());
}

MR_TEST(WhereNoEventCanBeHadMemoryIsFreedAtTheEnd) {
  if (!OnFake()) return;
  uint64_t before = 0;
  {
    Opened opened(0);
    before = opened.device->FreeBytes();
    auto stream = opened.NewStream(0);
    MR_REQUIRE(stream->Nop(1).ok());
    auto first = opened.device->AllocateInterprocess(kSharedBytes);
    auto second = opened.device->AllocateInterprocess(kSharedBytes);
    MR_REQUIRE(first.ok() && second.ok());
    MR_REQUIRE(Finish(*stream, 1));
    // The stream's own event exists already; the second record finds no event, and fails.
    FailCalls("cuEventCreate:0:2");
    MR_EXPECT(stream->Free(2, std::move(first).value()).ok());
    MR_EXPECT_EQ(Code(stream->Free(3, std::move(second).value())), static_cast<int>(StatusCode::kOutOfMemory));
    FailCalls("");
    MR_EXPECT(stream->Nop(3).ok());
    MR_REQUIRE(Finish(*stream, 3));
    MR_EXPECT(opened.device->FreeBytes() < before);
  }
  Opened again(0);
  MR_EXPECT_EQ(again.device->FreeBytes(), before);
}

MR_TEST(WhatCannotBeExportedOrOpenedIsRefused) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto pooled = stream->Allocate(1, kSharedBytes);
  MR_REQUIRE(pooled.ok());
  MR_EXPECT_EQ(Code(opened.device->ExportMemory(*pooled.value()).status()), static_cast<int>(StatusCode::kUnsupported));
  MR_REQUIRE(stream->Free(2, std::move(pooled).value()).ok());
  MR_REQUIRE(Finish(*stream, 2));
  const hal::IpcHandle nothing = {};
  MR_EXPECT_EQ(Code(opened.device->OpenMemory(nothing, kSharedBytes).status()),
               static_cast<int>(StatusCode::kArgument));
  MR_EXPECT_EQ(Code(opened.device->OpenEvent(nothing).status()), static_cast<int>(StatusCode::kArgument));
  if (OnFake()) {
    // Driver errors about an invalid handle, and errors that are not about the handle.
    const struct {
      const char* code;
      StatusCode expected;
    } rows[] = {{"1", StatusCode::kArgument},      {"101", StatusCode::kArgument},   {"205", StatusCode::kArgument},
                {"304", StatusCode::kArgument},    {"400", StatusCode::kArgument},   {"2", StatusCode::kOutOfMemory},
                {"801", StatusCode::kUnsupported}, {"500", StatusCode::kUnsupported}};
    for (const auto& row : rows) {
      FailCalls((std::string("cuIpcOpenMemHandle:0:") + row.code + ",cuIpcOpenEventHandle:0:" + row.code).c_str());
      MR_EXPECT_EQ(Code(opened.device->OpenMemory(nothing, kSharedBytes).status()), static_cast<int>(row.expected));
      MR_EXPECT_EQ(Code(opened.device->OpenEvent(nothing).status()), static_cast<int>(row.expected));
    }
    FailCalls("");
  }
  // Never freed: it goes with its object.
  auto forgotten = opened.device->AllocateInterprocess(0);
  MR_REQUIRE(forgotten.ok());
  MR_EXPECT_EQ(forgotten.value()->bytes(), 0u);
}

}  // namespace
