#include "cuda/call_capture.h"

#include <tuple>
#include <utility>

#include "cuda/library_kernel.h"

namespace millrace::cuda {

namespace {

/// Its addresses are those that the calls were made with, so it has no parameters, and no launch of its own.
class CapturedCalls final : public LibraryKernel {
 public:
  CapturedCalls(std::shared_ptr<Context> context, CapturedGraph graph)
      : LibraryKernel(std::move(context)), graph_(std::move(graph)) {}
  [[nodiscard]] uint64_t WorkspaceBytes(std::span<void* const>) const override { return 0; }
  [[nodiscard]] uint64_t MostWorkspaceBytes() const override { return 0; }
  [[nodiscard]] Status Call(CUstream, std::span<void* const>, std::byte*) override {
    return {StatusCode::kUnsupported, "calling again what was captured"};
  }
  [[nodiscard]] const CapturedGraph* Captured() const override { return &graph_; }

 private:
  const CapturedGraph graph_;
};

}  // namespace

Result<std::unique_ptr<hal::CallCapture>> CallCapture::Begin(std::shared_ptr<Context> context) {
  Result<std::unique_ptr<StreamCapture>> capture = StreamCapture::Create(context);
  MR_TRY(capture.status());
  MR_TRY(capture.value()->Begin());
  return std::unique_ptr<hal::CallCapture>(new CallCapture(std::move(context), std::move(capture).value()));
}

CallCapture::~CallCapture() {
  if (!is_over_) std::ignore = capture_->End();
}

uint64_t CallCapture::stream() const {
  return reinterpret_cast<uintptr_t>(capture_->stream());
}

Result<std::shared_ptr<hal::Kernel>> CallCapture::End() {
  is_over_ = true;
  Result<CapturedGraph> graph = capture_->End();
  MR_TRY(graph.status());
  return std::shared_ptr<hal::Kernel>(std::make_shared<CapturedCalls>(context_, std::move(graph).value()));
}

}  // namespace millrace::cuda
