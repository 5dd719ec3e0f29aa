// The CPU backend's own launch rate and round trip: no JavaScript, no record, no ring, no channel thread. What
// bench/spine.ts holds the CPU device against, as driver_launch is for a GPU. Prints one line of JSON.
//
//   backend_launch [ordinal] [launches]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "cpu/backend.h"

namespace {

using millrace::protocol::TimelineSlot;
using Clock = std::chrono::steady_clock;

class NoSink final : public millrace::hal::ProgressSink {
 public:
  void Progress(millrace::hal::Ticket) noexcept override {}
};

template <typename T>
T Take(millrace::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "The CPU device failed: %s.\n", result.status().note());
    std::exit(2);
  }
  return std::move(result).value();
}

double Seconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

double Quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const auto ordinal = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  const int launches = argc > 2 ? std::atoi(argv[2]) : 200000;
  std::vector<TimelineSlot> timeline(1);
  NoSink sink;
  const auto backend = millrace::MakeCpuBackend();
  const auto device = Take(backend->Open(ordinal, timeline));
  if (!device->BindChannelThread().ok()) return 2;
  auto stream = Take(device->CreateStream({.priority = 0, .slot = timeline.data(), .sink = &sink}));
  constexpr std::string_view kPath = MILLRACE_EMPTY_KERNEL;
  const std::span image(reinterpret_cast<const std::byte*>(kPath.data()), kPath.size());
  const auto kernel = Take(device->LoadKernel({.image = image, .entry = "empty", .is_bounded = true}));

  uint64_t ticket = 0;
  const millrace::hal::LaunchRequest request{.kernel = kernel.get()};
  const auto launch = [&] {
    if (!stream->Launch(++ticket, request).ok()) std::exit(2);
  };
  const auto finish = [&] {
    while (stream->Completed() < ticket) std::this_thread::yield();
  };
  for (int i = 0; i < 2000; ++i) launch();
  finish();

  const auto start = Clock::now();
  for (int i = 0; i < launches; ++i) launch();
  const double issued = Seconds(start);
  finish();
  const double finished = Seconds(start);

  std::vector<double> round_trips;
  for (int i = 0; i < 5000; ++i) {
    const auto before = Clock::now();
    launch();
    finish();
    round_trips.push_back(Seconds(before) * 1e6);
  }
  const double median = Quantile(round_trips, 0.5);
  const double p99 = Quantile(round_trips, 0.99);

  std::printf(
      "{\"launches\": %d, \"issueNs\": %.1f, \"sustainedNs\": %.1f, \"launchesPerSecond\": %.0f, "
      "\"roundTripP50Us\": %.2f, \"roundTripP99Us\": %.2f}\n",
      launches, issued / launches * 1e9, finished / launches * 1e9, launches / finished, median, p99);
  stream.reset();
  device->Close();
  return 0;
}
