#include "cuda/stream_capture.h"

#include <tuple>
#include <utility>

#include "cuda/context_scope.h"

namespace millrace::cuda {

CapturedGraph::~CapturedGraph() {
  // Of a lost device the driver refuses it, and nothing is lost by that.
  if (graph_ != nullptr) std::ignore = Cuda().cuGraphDestroy(graph_);
}

Result<std::unique_ptr<StreamCapture>> StreamCapture::Create(std::shared_ptr<Context> context, CUgreenCtx green) {
  MR_TRY(context->Alive());
  CUstream stream = nullptr;
  const CUresult made = green == nullptr ? Cuda().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0)
                                         : Cuda().cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0);
  MR_TRY(context->Check(made, "making a stream for a capture"));
  return std::unique_ptr<StreamCapture>(new StreamCapture(std::move(context), stream));
}

StreamCapture::~StreamCapture() {
  if (context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() == CUDA_SUCCESS)
    std::ignore = context_->Check(Cuda().cuStreamDestroy(stream_), "destroying a stream");
}

Result<CapturedGraph> StreamCapture::Capture(const std::function<Status(CUstream)>& call) {
  MR_TRY(Begin());
  const Status called = call(stream_);
  Result<CapturedGraph> ended = End();
  MR_TRY(called);
  return ended;
}

Status StreamCapture::Begin() {
  // Relaxed: the library may load kernels meanwhile, which other modes forbid, and no other thread has this stream.
  const CUresult begun = Cuda().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (begun == CUDA_ERROR_NOT_FOUND) return {StatusCode::kUnsupported, "capturing the call of a library"};
  return context_->Check(begun, "beginning a capture");
}

Result<CapturedGraph> StreamCapture::End() {
  CUgraph made = nullptr;
  const CUresult ended = Cuda().cuStreamEndCapture(stream_, &made);
  CapturedGraph graph(made);
  MR_TRY(context_->Check(ended, "ending a capture"));
  return graph;
}

}  // namespace millrace::cuda
