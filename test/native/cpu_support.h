// Shared by the CPU backend's tests: kernels, compiled by the test itself, and streams that count their own tickets.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "cpu/device.h"
#include "hal/graph.h"
#include "testing.h"

namespace millrace {

using hal::Ticket;
using testing::Eventually;

inline constexpr char kKernels[] = R"(
#include <atomic>
#include <cstdint>
#include <unistd.h>
#include "launch_abi.h"
#define KERNEL(name, ...)                                      \
  extern "C" const unsigned mr_params_##name[] = {__VA_ARGS__}; \
  extern "C" void mr_entry_##name(const MrLaunch* launch, unsigned long long first, unsigned long long end)
template <typename T> T Param(const MrLaunch* launch, int i) { return *static_cast<T*>(launch->params[i]); }
using Flag = std::atomic<uint32_t>*;

// words[i] = words[i] * factor + term: the order of launches shows in the result.
KERNEL(affine, 3, 8, 4, 4) {
  auto* word = Param<uint32_t*>(launch, 0);
  for (auto block = first; block < end; ++block) word[block] = word[block] * Param<uint32_t>(launch, 1) + Param<uint32_t>(launch, 2);
}
// words[to] = 3 * words[to] + 5 * words[one] + 7 * words[other] + 1.
KERNEL(mix, 4, 8, 4, 4, 4) {
  auto* words = Param<uint32_t*>(launch, 0);
  const uint32_t one = words[Param<uint32_t>(launch, 2)], other = words[Param<uint32_t>(launch, 3)];
  words[Param<uint32_t>(launch, 1)] = 3 * words[Param<uint32_t>(launch, 1)] + 5 * one + 7 * other + 1;
}
// Arrives, then spins until `parties` have.
KERNEL(meet, 2, 8, 4) {
  auto flag = Param<Flag>(launch, 0);
  flag->fetch_add(1);
  while (flag->load() < Param<uint32_t>(launch, 1)) {}
}
// Spins until the host opens the gate.
KERNEL(gate, 1, 8) {
  while (Param<Flag>(launch, 0)->load() == 0) {}
}
// Records which thread ran.
KERNEL(whoami, 1, 8) {
  for (auto block = first; block < end; ++block) Param<int32_t*>(launch, 0)[block] = gettid();
}
// Counts a block that takes a millisecond, and stores its thread in a second array.
KERNEL(slow, 2, 8, 8) {
  for (auto block = first; block < end; ++block) {
    usleep(1000);
    Param<Flag>(launch, 0)[block].fetch_add(1);
    Param<int32_t*>(launch, 1)[block] = gettid();
  }
}
// Many short blocks, each counted.
KERNEL(busy, 1, 8) {
  for (auto block = first; block < end; ++block) {
    for (volatile int i = 0; i < 3000;) i = i + 1;
    Param<Flag>(launch, 0)[block].fetch_add(1);
  }
}
KERNEL(shared, 1, 8) {
  uint32_t aligned = reinterpret_cast<uintptr_t>(launch->dynamic_shared) % 256 == 0;
  for (unsigned i = 0; i < launch->shared_bytes; ++i) launch->dynamic_shared[i] = char(i);
  *Param<uint32_t*>(launch, 0) = aligned;
}
// A cooperative launch: each block writes its number, and after each barrier adds its neighbour's previous value. With
// `leaves`, a block ends after as many rounds as its number.
KERNEL(circle, 4, 8, 8, 4, 4) {
  auto* words = Param<uint32_t*>(launch, 0);
  auto* counts = Param<Flag>(launch, 1);
  const uint32_t turns = Param<uint32_t>(launch, 2), leaves = Param<uint32_t>(launch, 3), blocks = launch->grid[0];
  thread_local uint32_t own;  // Shared memory: the block's own for as long as it lives.
  for (auto block = first; block < end; ++block) {
    own = block;
    words[block] = block;
    for (uint32_t turn = 0; turn < turns && (!leaves || turn < block); ++turn) {
      launch->wait_for_grid(launch->grid_barrier);
      const uint32_t theirs = words[(block + 1) % blocks];
      launch->wait_for_grid(launch->grid_barrier);
      words[block] += own == block ? theirs : 1000000;
    }
    counts[block].fetch_add(1);
  }
}
// A cooperative launch without a barrier: every block waits for the next one's write; the last one begins.
KERNEL(handed, 1, 8) {
  auto flags = Param<Flag>(launch, 0);
  for (auto block = first; block < end; ++block) {
    while (block + 1 < launch->grid[0] && flags[block + 1].load() == 0) usleep(10);
    flags[block].store(1);
  }
}
KERNEL(wide, 1, 32765) {}
// words[0] = the sum of a struct's elements, times the last parameter.
struct Five { uint32_t at[5]; };
KERNEL(five, 3, 8, 20, 4) {
  uint32_t sum = 0;
  for (const uint32_t each : Param<Five>(launch, 1).at) sum += each;
  Param<uint32_t*>(launch, 0)[0] = sum * Param<uint32_t>(launch, 2);
}
// Counts its launches in a variable of the image.
static uint32_t launches = 40;
static const uint32_t fixed = 7;
KERNEL(count, 1, 8) {
  *Param<uint32_t*>(launch, 0) = ++launches;
}
extern "C" const MrVariable mr_variables[] = {
    {"launches", &launches, sizeof launches, 0}, {"box::fixed", (void*)&fixed, sizeof fixed, 1}, {}};

// Launches `entry` with two pointers and a number.
void Launch(const MrLaunch* launch, unsigned long long block, MrEntry entry, unsigned blocks,
            unsigned threads, unsigned long long stream, void* one, void* two, unsigned number) {
  const void* const params[] = {&one, &two, &number};
  const unsigned sizes[] = {8, 8, 4};
  const MrChild child{entry, params, sizes, 3, {blocks, 1, 1}, {threads, 1, 1}, 1024, 0, stream,
                      {unsigned(block), 0, 0}, {0, 0, 0}};
  launch->launcher->launch(launch->launcher, &child);
}
// Counts itself at words[number]; each block launches two grids of two blocks with the next lower number.
KERNEL(tree, 3, 8, 8, 4) {
  auto* words = Param<Flag>(launch, 0);
  const auto number = Param<uint32_t>(launch, 2);
  for (auto block = first; block < end; ++block) {
    words[number].fetch_add(1);
    for (int i = 0; i < 2 && number > 0; ++i) {
      Launch(launch, block, mr_entry_tree, 2, 1, i == 0 ? 0 : 4, words, nullptr, number - 1);
    }
  }
}
// Launches itself on the tail stream `number` times: its counter needs no atomics.
KERNEL(rounds, 3, 8, 8, 4) {
  auto* word = Param<uint32_t*>(launch, 0);
  const auto number = Param<uint32_t>(launch, 2);
  *word += 1;
  if (number > 1) Launch(launch, 0, mr_entry_rounds, 1, 1, 3, word, nullptr, number - 1);
}
// words[0] is the position of the next number.
KERNEL(note, 3, 8, 8, 4) {
  auto* words = Param<uint32_t*>(launch, 0);
  const uint32_t place = words[0];
  usleep(50);
  words[1 + place] = Param<uint32_t>(launch, 2);
  words[0] = place + 1;
}
// Launches on the null stream, on two created streams of each grid, and on the tail stream.
KERNEL(orders, 3, 8, 8, 4) {
  auto* words = Param<uint32_t*>(launch, 0);
  const auto room = Param<uint32_t>(launch, 2);
  const unsigned long long own = launch->launcher->make_stream(launch->launcher);
  for (auto block = first; block < end; ++block) {
    for (unsigned i = 0; i < 8; ++i) {
      Launch(launch, block, mr_entry_note, 1, 1, 0, words + block * room, nullptr, i);
      if (block == 0) Launch(launch, block, mr_entry_note, 1, 1, own, words + launch->grid[0] * room, nullptr, i);
      if (block == 0) Launch(launch, block, mr_entry_note, 1, 1, 3, words + (launch->grid[0] + 1) * room, nullptr, i);
    }
  }
}
// A launch of 2000 threads per block, which is refused, and a valid one.
KERNEL(beyond, 3, 8, 8, 4) {
  auto* words = Param<Flag>(launch, 0);
  Launch(launch, 0, mr_entry_tree, 1, 2000, 0, words, nullptr, 0);
  Launch(launch, 0, mr_entry_tree, 1, 1, 0, words, nullptr, 0);
}
// From one block, `number` grids of one block each.
KERNEL(flood, 3, 8, 8, 4) {
  for (auto block = first; block < end; ++block) {
    for (unsigned i = 0; i < Param<uint32_t>(launch, 2); ++i) {
      Launch(launch, block, mr_entry_tree, 1, 1, 4, Param<void*>(launch, 0), nullptr, 0);
    }
  }
}
// Recurses without end: each call has its own stack frame.
__attribute__((noinline)) int deeper(volatile int* word, int depth) {
  volatile int own[100];
  own[depth % 100] = *word;
  return depth < 0 ? 0 : deeper(word, depth + 1) + own[(depth + 1) % 100];
}
// In block `number`, after counting each earlier one.
KERNEL(overflow, 2, 8, 4) {
  for (auto block = first; block < end; ++block) {
    launch->block_now = block;
    Param<Flag>(launch, 0)[block].fetch_add(1);
    if (block == Param<uint32_t>(launch, 1)) deeper(Param<int*>(launch, 0), 0);
  }
}
KERNEL(stray, 1, 8) {
  *Param<volatile int*>(launch, 0) = 1;
}
KERNEL(trap, 0) {
  __builtin_trap();
}
// Asks for stacks without end, and writes to them.
KERNEL(greedy, 1, 8) {
  for (unsigned count = 1;; count *= 2) {
    char* const stacks = launch->take_stacks(launch->run, count, 1 << 20);
    for (unsigned n = 0; n < count; ++n) static_cast<volatile char*>(stacks)[(n + 1ull) * (1 << 20) - 1] = 1;
    Param<Flag>(launch, 0)->fetch_add(1);
  }
}
KERNEL(quotient, 3, 8, 4, 4) {
  const volatile int dividend = Param<int>(launch, 1), divisor = Param<int>(launch, 2);
  Param<int*>(launch, 0)[0] = dividend / divisor;
  Param<int*>(launch, 0)[1] = dividend % divisor;
}
// Launches a grid that overflows its stack, and one after it.
KERNEL(ruinous, 3, 8, 8, 4) {
  Launch(launch, 0, mr_entry_overflow, 1, 1, 0, Param<void*>(launch, 0), nullptr, 0);
  Launch(launch, 0, mr_entry_tree, 1, 1, 0, Param<void*>(launch, 0), nullptr, 0);
}
extern "C" void mr_entry_bare(const MrLaunch*, unsigned long long, unsigned long long) {}
)";

/// The compiler for this processor: MILLRACE_CXX names another one than c++ where the tests are emulated.
inline std::string Compiler() {
  const char* const named = std::getenv("MILLRACE_CXX");
  return named != nullptr ? named : "c++";
}

// The kernels' shared object, in a folder that is removed when the program ends.
class KernelImage {
 public:
  KernelImage() {
    char folder[] = "/tmp/millrace-cpu-test-XXXXXX";
    MR_CHECK(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path_ = folder_ + "/kernels.so";
    const std::string source = folder_ + "/kernels.cpp";
    std::ofstream(source) << kKernels;
    const std::string command =
        Compiler() + " -std=c++20 -O1 -shared -fPIC -w -I " MILLRACE_SHIM " -o " + path_ + ' ' + source;
    MR_CHECK(std::system(command.c_str()) == 0);
  }
  ~KernelImage() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

inline const std::string& KernelPath() {
  static const KernelImage image;
  return image.path();
}

inline hal::KernelRequest Request(const std::string& path, const char* entry, bool is_bounded = false) {
  return {std::as_bytes(std::span(path.data(), path.size())), entry, is_bounded};
}

class Sink final : public hal::ProgressSink {
 public:
  void Progress(Ticket completed) noexcept override {
    // The word is moved before anybody is told, and both only grow.
    if (completed <= last_.exchange(completed)) ++out_of_order_;
    if (std::atomic_ref(slot_.device_word).load() < completed) ++out_of_order_;
    last_thread_.store(gettid());
  }
  void Failed(Ticket ticket, const hal::KernelFailure& failure) noexcept override {
    if (last_.load() >= ticket || std::atomic_ref(slot_.device_word).load() >= ticket) ++out_of_order_;
    std::lock_guard lock(mutex_);
    failures_.push_back({ticket, failure.status.code(), failure.kernel, failure.node, failure.report});
  }
  struct Failure {
    Ticket ticket;
    StatusCode code;
    uint32_t kernel;
    uint32_t node;
    protocol::FaultSlot report;
  };
  [[nodiscard]] std::vector<Failure> failures() {
    std::lock_guard lock(mutex_);
    return failures_;
  }
  [[nodiscard]] Ticket last() const { return last_.load(); }
  [[nodiscard]] int out_of_order() const { return out_of_order_.load(); }
  [[nodiscard]] pid_t last_thread() const { return last_thread_.load(); }
  [[nodiscard]] protocol::TimelineSlot& slot() { return slot_; }

 private:
  alignas(64) protocol::TimelineSlot slot_{};
  std::atomic<Ticket> last_{0};
  std::atomic<int> out_of_order_{0};
  std::atomic<pid_t> last_thread_{0};
  std::mutex mutex_;
  std::vector<Failure> failures_;  // Guarded by mutex_.
};

// A stream with its sink, and tickets that count themselves.
struct Lane {
  explicit Lane(hal::Device& device, int32_t priority = 0)
      : sink(std::make_unique<Sink>()), stream(Make(device, *sink, priority)) {}
  Lane(Lane&&) = default;
  ~Lane() {
    if (!sink) return;
    MR_EXPECT(Drained());
    stream.reset();
    MR_EXPECT_EQ(sink->out_of_order(), 0);
    MR_EXPECT_EQ(sink->last(), last);
  }

  static std::unique_ptr<hal::Stream> Make(hal::Device& device, Sink& sink, int32_t priority) {
    return std::move(device.CreateStream({.priority = priority, .slot = &sink.slot(), .sink = &sink}).value());
  }
  template <typename... Params>
  Ticket Launch(const std::shared_ptr<hal::Kernel>& kernel, hal::Dim3 grid, Params... params) {
    std::array<void*, sizeof...(Params)> pointers{&params...};
    MR_EXPECT(stream->Launch(++last, {kernel.get(), grid, {1, 1, 1}, shared_bytes, pointers}).ok());
    return last;
  }
  template <typename... Params>
  Status LaunchTogether(const std::shared_ptr<hal::Kernel>& kernel, hal::Dim3 grid, Params... params) {
    std::array<void*, sizeof...(Params)> pointers{&params...};
    const Status status = stream->Launch(last + 1, {kernel.get(), grid, {1, 1, 1}, shared_bytes, pointers, true});
    if (status.ok()) ++last;
    return status;
  }
  Ticket LaunchGraph(hal::Graph& graph, std::vector<hal::GraphPatch> patches = {}) {
    MR_EXPECT(stream->LaunchGraph(++last, {&graph, patches}).ok());
    return last;
  }
  Ticket Nop() {
    MR_EXPECT(stream->Nop(++last).ok());
    return last;
  }
  Ticket Wait(Lane& other, Ticket until) {
    MR_EXPECT(stream->Wait(++last, *other.stream, until).ok());
    return last;
  }
  bool Drained() {
    return Eventually([&] { return stream->Completed() == last; }, 60000);
  }

  std::unique_ptr<Sink> sink;
  std::unique_ptr<hal::Stream> stream;
  Ticket last = 0;
  uint32_t shared_bytes = 0;
};

inline std::unique_ptr<hal::Device> OpenDevice(uint32_t threads = 2, uint64_t memory_bytes = 1 << 30) {
  hal::DeviceInfo info;
  info.multiprocessors = threads;
  info.max_threads_per_block = 1024;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    info.max_block[axis] = 1024;
    info.max_grid[axis] = 1 << 30;
  }
  info.total_memory_bytes = memory_bytes;
  return std::move(cpu::CpuDevice::Open(info).value());
}

inline std::shared_ptr<hal::Kernel> LoadKernel(hal::Device& device, const char* entry, bool is_bounded = false) {
  return device.LoadKernel(Request(KernelPath(), entry, is_bounded)).value();
}

}  // namespace millrace
