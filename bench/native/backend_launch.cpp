// The native layers' own launch rate and round trip, one below the other, without JavaScript: the backend alone, then
// the channel with its ring, records and thread. The driver alone (driver_peer) below them and JavaScript above, what
// each layer costs can be read off. Prints one line of JSON.
//
//   backend_launch cpu|cuda [ordinal] [launches]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cpu/backend.h"
#include "cuda/backend.h"
#include "kernel_image.h"
#include "runtime/registry.h"

namespace {

using millrace::protocol::TimelineSlot;
using namespace millrace::bench;  // NOLINT: the program is a benchmark

class NoSink final : public millrace::hal::ProgressSink {
 public:
  void Progress(millrace::hal::Ticket) noexcept override {}
  void Failed(millrace::hal::Ticket, const millrace::hal::KernelFailure&) noexcept override {}
};

template <typename T>
T Take(millrace::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "The device failed: %s.\n", result.status().note());
    std::exit(2);
  }
  return std::move(result).value();
}

struct Figures {
  double issue_ns = 0;
  double sustained_ns = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// `launch` submits one; `finish` spins until all are completed.
template <typename Launch, typename Finish>
Figures Measure(int launches, Launch launch, Finish finish) {
  for (int i = 0; i < 2000; ++i) launch();
  finish();
  Figures figures;
  const auto start = Clock::now();
  for (int i = 0; i < launches; ++i) launch();
  figures.issue_ns = Seconds(start) / launches * 1e9;
  finish();
  figures.sustained_ns = Seconds(start) / launches * 1e9;
  std::vector<double> round_trips;
  for (int i = 0; i < 5000; ++i) {
    const auto before = Clock::now();
    launch();
    finish();
    round_trips.push_back(Seconds(before) * 1e6);
  }
  figures.p50_us = Quantile(round_trips, 0.5);
  figures.p99_us = Quantile(round_trips, 0.99);
  return figures;
}

millrace::hal::KernelRequest EmptyKernel(bool is_cpu) {
  static const std::string image = KernelImage(is_cpu);
  return {.image = std::as_bytes(std::span(image)), .entry = "empty", .is_bounded = true};
}

Figures MeasureBackend(millrace::hal::Backend& backend, bool is_cpu, uint32_t ordinal, int launches) {
  auto* timeline = static_cast<TimelineSlot*>(std::aligned_alloc(4096, 4096));
  std::memset(static_cast<void*>(timeline), 0, 4096);
  NoSink sink;
  const auto device = Take(backend.Open(ordinal, std::span(timeline, 4096 / sizeof(TimelineSlot))));
  if (!device->BindChannelThread().ok()) std::exit(2);
  auto stream = Take(device->CreateStream({.priority = 0, .slot = timeline, .sink = &sink}));
  const auto kernel = Take(device->LoadKernel(EmptyKernel(is_cpu)));
  const millrace::hal::LaunchRequest request{.kernel = kernel.get()};
  uint64_t ticket = 0;
  const Figures figures = Measure(
      launches,
      [&] {
        // As the channel does: a signal in between, and the window.
        while (ticket - stream->Completed() >= millrace::protocol::kStreamWindow) {
        }
        if (!stream->Launch(++ticket, request).ok()) std::exit(2);
        if (ticket % millrace::protocol::kTimelineWriteEvery == 0 && !stream->Signal().ok()) std::exit(2);
      },
      [&] {
        if (!stream->Signal().ok()) std::exit(2);
        while (stream->Completed() < ticket) {
        }
      });
  stream.reset();
  device->Close();
  std::free(timeline);
  return figures;
}

Figures MeasureChannel(millrace::hal::Backend& backend, bool is_cpu, uint32_t ordinal, int launches) {
  namespace protocol = millrace::protocol;
  constexpr size_t kBytes = protocol::kMaxStreams * sizeof(TimelineSlot);
  auto* timeline = static_cast<TimelineSlot*>(std::aligned_alloc(4096, kBytes));
  std::memset(static_cast<void*>(timeline), 0, kBytes);
  const auto channel = Take(millrace::Registry::Instance().Open(
      backend,
      {.ordinal = ordinal, .timeline = {timeline, protocol::kMaxStreams}, .max_pending = 1 << 20, .memory = nullptr}));
  const auto stream = static_cast<uint32_t>(channel->ReserveStream(nullptr));
  protocol::StreamCreateRecord create{};
  create.header = {static_cast<uint16_t>(protocol::Opcode::kStreamCreate), 0, sizeof(create), stream, 0};
  channel->Submit(std::as_bytes(std::span(&create, 1)));
  constexpr uint32_t kKernel = 1u << protocol::kHandleIndexBits;
  if (!channel->InstallKernel(kKernel, {.request = EmptyKernel(is_cpu)}).ok()) std::exit(2);
  protocol::LaunchRecord record{};
  record.header = {static_cast<uint16_t>(protocol::Opcode::kLaunch), 0, sizeof(record), stream, 0};
  record.kernel = kKernel;
  record.grid_x = record.grid_y = record.grid_z = record.block_x = record.block_y = record.block_z = 1;
  uint64_t ticket = 0;
  const Figures figures = Measure(
      launches, [&] { ticket = channel->Submit(std::as_bytes(std::span(&record, 1))).ticket; },
      [&] {
        while (channel->FindStream(stream)->Completed() < ticket) {
        }
      });
  channel->Close();
  millrace::Registry::Instance().Remove(channel->id());
  return figures;
}

void Print(const char* name, const Figures& figures, const char* end) {
  std::printf(
      "\"%s\": {\"issueNs\": %.1f, \"sustainedNs\": %.1f, \"roundTripP50Us\": %.2f, \"roundTripP99Us\": %.2f}%s", name,
      figures.issue_ns, figures.sustained_ns, figures.p50_us, figures.p99_us, end);
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_cpu = argc < 2 || std::strcmp(argv[1], "cuda") != 0;
  const auto ordinal = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  const int launches = argc > 3 ? std::atoi(argv[3]) : 200000;
  const auto backend = is_cpu ? millrace::MakeCpuBackend() : millrace::MakeCudaBackend();
  const Figures direct = MeasureBackend(*backend, is_cpu, ordinal, launches);
  const Figures through = MeasureChannel(*backend, is_cpu, ordinal, launches);
  std::printf("{");
  Print("backend", direct, ", ");
  Print("channel", through, "}\n");
  return 0;
}
