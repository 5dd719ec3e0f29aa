#include "cuda/own_streams.h"

namespace millrace::cuda {

StreamSet& OwnStreams() {
  static auto* streams = new StreamSet;  // Never destroyed: native threads may outlive every static object.
  return *streams;
}

Status CheckForeign(Context& context, CUstream handle) {
  // Two streams of ours over one of the driver's would each believe that its work alone is in there.
  if (OwnStreams().Has(handle)) return {StatusCode::kArgument, "wrapping a stream of this library's own"};
  // The default stream of a thread would be that of the channel's thread.
  constexpr uintptr_t kPerThread = 2;
  if (reinterpret_cast<uintptr_t>(handle) == kPerThread) {
    return {StatusCode::kUnsupported, "wrapping a default stream that each thread has of its own"};
  }
  if (handle == nullptr) return {};
  CUcontext owner = nullptr;
  const CUresult code = Cuda().cuStreamGetCtx(handle, &owner);
  if (code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_INVALID_VALUE) {
    return {StatusCode::kArgument, "wrapping a handle that is no stream", static_cast<int32_t>(code)};
  }
  MR_TRY(context.Check(code, "asking whose a stream is"));
  if (owner == context.handle()) return {};
  return {StatusCode::kArgument, "wrapping a stream of another device"};
}

}  // namespace millrace::cuda
