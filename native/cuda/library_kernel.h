// A call of a library in the place of a kernel (hal/library_plan.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "cuda/context.h"
#include "cuda/stream_capture.h"
#include "hal/hal.h"

namespace millrace::cuda {

class Communicator;
class ExecutableGraph;

class LibraryKernel : public hal::Kernel {
 public:
  [[nodiscard]] const hal::KernelLimits& limits() const final { return limits_; }
  [[nodiscard]] Result<uint64_t> MaxCooperativeBlocks(uint32_t, uint32_t) final { return uint64_t{0}; }
  [[nodiscard]] bool IsOfLibrary() const final { return true; }
  [[nodiscard]] Context& context() const { return *context_; }

  /// The memory that a launch with these parameters uses besides, if it gets it. Thread: any.
  [[nodiscard]] virtual uint64_t WorkspaceBytes(std::span<void* const> params) const = 0;
  /// The same for the parameters that need the most.
  [[nodiscard]] virtual uint64_t MostWorkspaceBytes() const = 0;
  /// Whether it fails without that memory.
  [[nodiscard]] virtual bool NeedsWorkspace() const { return false; }
  /// The graph that stands for every call of it; null for one that is called with parameters.
  [[nodiscard]] virtual const CapturedGraph* Captured() const { return nullptr; }
  /// Submits the call. `workspace`: of that size, or null, which may take longer. Thread: any, with the context
  /// current.
  [[nodiscard]] virtual Status Call(CUstream stream, std::span<void* const> params, std::byte* workspace) = 0;
  /// The same. `place`: of this record among those of all streams. The one before, if there was one, was the record
  /// before of this stream. 0 for streams to which others submit too.
  [[nodiscard]] virtual Status CallAs(uint64_t /*place*/, CUstream stream, std::span<void* const> params,
                                      std::byte* workspace) {
    return Call(stream, params, workspace);
  }

  /// What it submits, as a part of the graph `whole`. No value if the library refuses it and tells of that at each
  /// launch. Thread: as Call.
  [[nodiscard]] virtual Result<std::optional<CapturedGraph>> Capture(
      StreamCapture& capture, std::span<void* const> params, std::byte* workspace,
      const std::shared_ptr<ExecutableGraph>& /*whole*/) {
    Result<CapturedGraph> captured = capture.Capture([&](CUstream stream) { return Call(stream, params, workspace); });
    MR_TRY(captured.status());
    return std::optional(std::move(captured).value());
  }
  /// That of a collective, which has to know of each launch; null for other calls.
  [[nodiscard]] virtual std::shared_ptr<Communicator> communicator() const { return nullptr; }

 protected:
  explicit LibraryKernel(std::shared_ptr<Context> context) : context_(std::move(context)) {
    // The launch has the shape of the kernel that it stands for, and the library another.
    limits_.max_threads_per_block = UINT32_MAX;
    limits_.max_dynamic_shared_bytes = UINT32_MAX;
  }

 private:
  const std::shared_ptr<Context> context_;
  hal::KernelLimits limits_;
};

}  // namespace millrace::cuda
