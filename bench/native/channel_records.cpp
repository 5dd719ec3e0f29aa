// What the channel does for a record, and what submitting one costs, for step_counter, which counts the instructions
// between two marks: launches with a number and two arrays, on a device that does nothing.
//
//   step_counter channel_records submit     the thread that submits
//   step_counter channel_records channel    the channel's thread
//
// Prints the id of the thread that is to be counted, and waits for a line of input. The marks are calls of umask with
// values that nothing else uses. Each pair encloses kRecords records, the first pair none.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "null_backend.h"
#include "runtime/registry.h"

namespace {

using namespace millrace;  // NOLINT: the program speaks of little else

constexpr int kRecords = 100;
constexpr int kRegions = 5;
/// Launches that run before the first mark.
constexpr int kWarm = 500;

std::atomic<bool> is_open{false};
bool is_for_channel = false;

void Begin() {
  umask(0635);
}
void End() {
  umask(0636);
}

/// Tells the counter this thread and waits until it is attached.
void Attach() {
  std::printf("%ld\n", syscall(SYS_gettid));
  std::fflush(stdout);
  if (std::getchar() == EOF) std::exit(2);
}

/// On the channel's thread. The second launch waits until all records are submitted, so that the thread never sleeps
/// between marks. The first shows that the kernel is loaded: launches before that would take another way through the
/// channel.
void OnLaunch() {
  static int count = 0;
  ++count;
  if (count == 2) {
    while (!is_open.load()) std::this_thread::yield();
    if (is_for_channel) Attach();
  }
  if (!is_for_channel || count < kWarm) return;
  const int after = count - kWarm;
  if (after == 0) {
    Begin();
    End();
  }
  if (after % kRecords != 0 || after > kRegions * kRecords) return;
  if (after > 0) End();
  if (after < kRegions * kRecords) Begin();
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "The device failed: %s.\n", result.status().note());
    std::exit(2);
  }
  return std::move(result).value();
}

template <typename T>
void Head(T& record, protocol::Opcode opcode, uint32_t stream) {
  const protocol::RecordHeader header{static_cast<uint16_t>(opcode), 0, sizeof(T), stream, 0};
  std::memcpy(static_cast<void*>(&record), &header, sizeof(header));
}

struct Launch {
  protocol::LaunchRecord record;
  protocol::LaunchArg args[3];
};

}  // namespace

int main(int argc, char** argv) {
  is_for_channel = argc > 1 && std::strcmp(argv[1], "channel") == 0;
  bench::NullBackend backend(OnLaunch);
  auto timeline = std::make_shared<std::vector<protocol::TimelineSlot>>(protocol::kMaxStreams);
  const auto channel = Take(Registry::Instance().Open(
      backend, {.ordinal = 0, .timeline = *timeline, .max_pending = 1 << 20, .memory = timeline}));
  const auto stream = static_cast<uint32_t>(channel->ReserveStream(nullptr));
  const auto submit = [&](const auto& record) { return channel->Submit(std::as_bytes(std::span(&record, 1))).ticket; };

  protocol::StreamCreateRecord create{};
  Head(create, protocol::Opcode::kStreamCreate, stream);
  submit(create);
  const auto handle = [](uint32_t index) { return index | (1u << protocol::kHandleIndexBits); };
  for (const uint32_t index : {1u, 2u}) {
    protocol::AllocRecord alloc{};
    Head(alloc, protocol::Opcode::kAlloc, stream);
    alloc.handle = handle(index);
    alloc.bytes = 4;
    submit(alloc);
  }
  Take(channel->InstallKernel(handle(0), {.request = {.entry = "three", .is_bounded = true}, .module = std::nullopt}));
  Launch launch{};
  Head(launch, protocol::Opcode::kLaunch, stream);
  protocol::LaunchRecord& record = launch.record;
  record.kernel = handle(0);
  record.arg_count = 3;
  record.grid_x = record.grid_y = record.grid_z = record.block_x = record.block_y = record.block_z = 1;
  launch.args[0].kind = static_cast<uint8_t>(protocol::ArgKind::kScalar);
  launch.args[0].size = 4;
  for (const uint32_t index : {1u, 2u}) {
    protocol::LaunchArg& arg = launch.args[index];
    arg.kind = static_cast<uint8_t>(protocol::ArgKind::kMemory);
    arg.size = 8;
    arg.access = static_cast<uint8_t>(index == 1 ? protocol::Access::kRead : protocol::Access::kReadWrite);
    arg.handle = handle(index);
  }

  const auto wait = [&](uint64_t ticket) {
    while (channel->FindStream(stream)->Completed() < ticket) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  wait(submit(launch));
  for (int i = 0; i < kWarm; ++i) submit(launch);
  if (!is_for_channel) {
    Attach();
    Begin();
    End();
  }
  uint64_t last = 0;
  for (int region = 0; region < kRegions; ++region) {
    if (!is_for_channel) Begin();
    for (int i = 0; i < kRecords; ++i) last = submit(launch);
    if (!is_for_channel) End();
  }
  last = submit(launch);
  is_open = true;
  wait(last);
  const bool has_failed = !channel->Failures(stream, 0, 1).intervals.empty();
  channel->Close();
  Registry::Instance().Remove(channel->id());
  if (has_failed) std::fprintf(stderr, "A launch failed.\n");
  return has_failed ? 1 : 0;
}
