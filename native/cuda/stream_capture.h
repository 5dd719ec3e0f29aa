// A private stream on which calls of other libraries are captured: nothing runs, and the kernels that the calls would
// launch are loaded and become a graph.
#pragma once

#include <functional>
#include <memory>

#include "cuda/context.h"

namespace millrace::cuda {

/// A graph of the driver.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  explicit CapturedGraph(CUgraph graph) : graph_(graph) {}
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&& other) noexcept : graph_(other.graph_) { other.graph_ = nullptr; }
  CapturedGraph& operator=(CapturedGraph&&) = delete;
  [[nodiscard]] CUgraph handle() const { return graph_; }

 private:
  CUgraph graph_ = nullptr;
};

/// Thread: one at a time, with the context current.
class StreamCapture {
 public:
  /// `green`: of a partition, to which what is captured belongs. May block: not on the channel's thread.
  static Result<std::unique_ptr<StreamCapture>> Create(std::shared_ptr<Context> context, CUgreenCtx green = nullptr);
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;

  /// What `call` submits to the stream. kUnsupported on drivers without stream capture.
  Result<CapturedGraph> Capture(const std::function<Status(CUstream)>& call);
  /// The same in two steps; each Begin that succeeds is followed by one End.
  Status Begin();
  Result<CapturedGraph> End();
  [[nodiscard]] CUstream stream() const { return stream_; }

 private:
  StreamCapture(std::shared_ptr<Context> context, CUstream stream) : context_(std::move(context)), stream_(stream) {}
  const std::shared_ptr<Context> context_;
  const CUstream stream_;
};

}  // namespace millrace::cuda
