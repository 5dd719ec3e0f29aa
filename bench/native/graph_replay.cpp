// The cost of a node when a graph runs again: a chain of empty kernels through the backend and, on CUDA, the same chain
// launched by the driver API alone, in one run. Prints one line of JSON for each length.
//
//   graph_replay cpu|cuda [ordinal] [nodes in all]
#include <time.h>

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
#include "cuda/driver.h"
#include "hal/graph.h"
#include "kernel_image.h"

namespace {

using namespace millrace;  // NOLINT: the program speaks of little else
using bench::Clock;

class NoSink final : public hal::ProgressSink {
 public:
  void Progress(hal::Ticket) noexcept override {}
  void Failed(hal::Ticket, const hal::KernelFailure&) noexcept override {}
};

void Check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "%s failed.\n", what);
  std::exit(2);
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "The device failed: %s (%d).\n", result.status().note(), result.status().driver_code());
    std::exit(2);
  }
  return std::move(result).value();
}

struct Figures {
  double issue_ns = 0;       // Of a launch call.
  double node_ns = 0;        // Of a node, while launches follow each other.
  double node_cpu_ns = 0;    // Of a node: processor time of all threads but this one.
  double round_trip_us = 0;  // Mean, one launch at a time.
};

/// Processor time of all threads of the process but the calling one.
double OtherThreadsSeconds() {
  const auto seconds = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

/// `launch` submits one; `finish` waits until all are completed.
template <typename Launch, typename Finish>
Figures Measure(int length, int nodes, Launch launch, Finish finish) {
  const int launches = std::max(1, nodes / length);
  for (int i = 0; i < 20; ++i) launch();
  finish();
  Figures figures;
  const auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  const double others = OtherThreadsSeconds();
  auto start = Clock::now();
  for (int i = 0; i < launches; ++i) launch();
  figures.issue_ns = seconds(start) / launches * 1e9;
  finish();
  figures.node_ns = seconds(start) / launches / length * 1e9;
  figures.node_cpu_ns = (OtherThreadsSeconds() - others) / launches / length * 1e9;
  constexpr int kRoundTrips = 200;
  start = Clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    launch();
    finish();
  }
  figures.round_trip_us = seconds(start) / kRoundTrips * 1e6;
  return figures;
}

Figures MeasureBackend(hal::Device& device, hal::Stream& stream, uint64_t& ticket, bool is_cpu, int length, int nodes) {
  const std::string image = bench::KernelImage(is_cpu);
  const auto kernel =
      Take(device.LoadKernel({.image = std::as_bytes(std::span(image)), .entry = "empty", .is_bounded = true}));
  std::vector<hal::GraphNode> list;
  for (uint32_t i = 0; i < static_cast<uint32_t>(length); ++i) {
    hal::GraphKernel node;
    node.kernel = kernel;
    list.push_back(
        {.device = &device, .work = node, .after = i == 0 ? std::vector<uint32_t>() : std::vector<uint32_t>{i - 1}});
  }
  const auto graph = Take(device.BuildGraph(std::move(list)));
  const hal::GraphLaunchRequest request{.graph = graph.get(), .patches = {}};
  const auto finish = [&] {
    Check(stream.Signal().ok(), "Signal");
    while (stream.Completed() < ticket) {
    }
  };
  return Measure(
      length, nodes,
      [&] {
        // As the channel does: a signal in between, and the window.
        while (ticket - stream.Completed() >= protocol::kStreamWindow) {
        }
        Check(stream.LaunchGraph(++ticket, request).ok(), "LaunchGraph");
        if (ticket % protocol::kTimelineWriteEvery == 0) Check(stream.Signal().ok(), "Signal");
      },
      finish);
}

Figures MeasureDriver(int length, int nodes) {
  const cuda::DriverTable& driver = cuda::Cuda();
  const auto check = [](cuda::CUresult code) { Check(code == cuda::CUDA_SUCCESS, "A call of the driver"); };
  cuda::CUmodule module = nullptr;
  cuda::CUfunction function = nullptr;
  cuda::CUstream stream = nullptr;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec exec = nullptr;
  const std::string image = bench::CudaImage();
  check(driver.cuModuleLoadData(&module, image.c_str()));
  check(driver.cuModuleGetFunction(&function, module, "empty"));
  check(driver.cuStreamCreateWithPriority(&stream, cuda::CU_STREAM_NON_BLOCKING, 0));
  check(driver.cuGraphCreate(&graph, 0));
  cuda::CUgraphNode last = nullptr;
  for (int i = 0; i < length; ++i) {
    const cuda::CUDA_KERNEL_NODE_PARAMS params = {function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, nullptr};
    cuda::CUgraphNode node = nullptr;
    check(driver.cuGraphAddKernelNode(&node, graph, &last, i == 0 ? 0 : 1, &params));
    last = node;
  }
  check(driver.cuGraphInstantiateWithFlags(&exec, graph, 0));
  const Figures figures = Measure(
      length, nodes, [&] { check(driver.cuGraphLaunch(exec, stream)); },
      [&] { check(driver.cuStreamSynchronize(stream)); });
  check(driver.cuGraphExecDestroy(exec));
  check(driver.cuGraphDestroy(graph));
  check(driver.cuStreamDestroy(stream));
  check(driver.cuModuleUnload(module));
  return figures;
}

void Print(const char* name, const Figures& figures) {
  std::printf(", \"%s\": {\"issueNs\": %.1f, \"nodeNs\": %.1f, \"nodeCpuNs\": %.1f, \"roundTripUs\": %.2f}", name,
              figures.issue_ns, figures.node_ns, figures.node_cpu_ns, figures.round_trip_us);
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_cpu = argc < 2 || std::strcmp(argv[1], "cuda") != 0;
  const auto ordinal = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  const int nodes = argc > 3 ? std::atoi(argv[3]) : 2'000'000;
  const auto backend = is_cpu ? MakeCpuBackend() : MakeCudaBackend();
  auto* timeline = static_cast<protocol::TimelineSlot*>(std::aligned_alloc(4096, 4096));
  std::memset(static_cast<void*>(timeline), 0, 4096);
  NoSink sink;
  const auto device = Take(backend->Open(ordinal, std::span(timeline, 4096 / sizeof(protocol::TimelineSlot))));
  Check(device->BindChannelThread().ok(), "BindChannelThread");
  auto stream = Take(device->CreateStream({.priority = 0, .slot = timeline, .sink = &sink}));
  uint64_t ticket = 0;
  for (const int length : {1, 100, 1000}) {
    const Figures own = MeasureBackend(*device, *stream, ticket, is_cpu, length, length == 1 ? nodes / 20 : nodes);
    std::printf("{\"nodes\": %d", length);
    Print("backend", own);
    if (!is_cpu) Print("driver", MeasureDriver(length, length == 1 ? nodes / 20 : nodes));
    std::printf("}\n");
  }
  stream.reset();
  device->Close();
  std::free(timeline);
  return 0;
}
