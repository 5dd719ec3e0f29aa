// A stream for tests of graphs on the CUDA backend.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda_fixture.h"
#include "hal/graph.h"

namespace millrace::testing {

/// A stream that counts its tickets, and finishes in order.
struct Lane {
  Lane(Opened& opened, int slot) : stream(opened.NewStream(slot)) {}
  ~Lane() { MR_EXPECT(Finish(*stream, last)); }
  Status Launch(hal::Graph& graph, std::vector<hal::GraphPatch> patches = {}) {
    // As the channel does.
    while (last - stream->Completed() >= protocol::kStreamWindow) MR_CHECK(Finish(*stream, last));
    const Status status = stream->LaunchGraph(last + 1, {&graph, patches});
    if (status.ok()) ++last;
    return status;
  }
  template <typename... Params>
  void Launch(const std::shared_ptr<hal::Kernel>& kernel, Params... values) {
    std::array<void*, sizeof...(Params)> params{&values...};
    MR_EXPECT(stream->Launch(++last, {.kernel = kernel.get(), .params = params}).ok());
  }
  bool Drained() { return Finish(*stream, last); }

  std::unique_ptr<hal::Stream> stream;
  hal::Ticket last = 0;
};

}  // namespace millrace::testing
