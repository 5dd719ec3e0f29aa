#include "cuda/own_streams.h"

#include <algorithm>
#include <tuple>

#include "cuda/driver_errors.h"

namespace millrace::cuda {

StreamSet& OwnStreams() {
  static auto* streams = new StreamSet;  // Never destroyed, because native threads may outlive static objects.
  return *streams;
}

Result<CUstream> StreamSet::Take(Context& context, int32_t priority, CUgreenCtx green) {
  MR_TRY(context.Alive());
  Result<CUstream> kept = TakeKept(context, priority, green);
  if (!kept.ok() || kept.value() != nullptr) return kept;
  CUstream stream = nullptr;
  const CUresult code = green == nullptr
                            ? Cuda().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority)
                            : Cuda().cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, priority);
  MR_TRY(context.Check(code, "creating a stream"));
  const std::lock_guard lock(mutex_);
  made_[stream] = {next_number_++, priority, context.ordinal(), green};
  return stream;
}

Result<CUstream> StreamSet::TakeKept(Context& context, int32_t priority, CUgreenCtx green) {
  const std::lock_guard lock(mutex_);
  std::vector<Kept>& closed = closed_[context.ordinal()];
  for (auto each = closed.begin(); each != closed.end(); ++each) {
    if (each->made.priority != priority || each->made.green != green) continue;
    const CUresult code = Cuda().cuStreamQuery(each->stream);
    if (IsSticky(code)) return context.Check(code, "querying a stream");
    if (code != CUDA_SUCCESS) continue;
    const CUstream stream = each->stream;
    closed.erase(each);
    return stream;
  }
  return static_cast<CUstream>(nullptr);
}

void StreamSet::GiveBack(Context& context, CUstream stream) {
  if (context.is_lost()) return;  // A lost device's streams are neither destroyed nor reused.
  CUstream surplus = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Kept>& closed = closed_[context.ordinal()];
    const Kept kept = {made_.at(stream), stream};
    const auto later = [](const Kept& a, const Kept& b) { return a.made.number < b.made.number; };
    closed.insert(std::ranges::upper_bound(closed, kept, later), kept);
    if (closed.size() > kMostKept) {
      surplus = closed.back().stream;
      closed.pop_back();
      made_.erase(surplus);
    }
  }
  if (surplus != nullptr) std::ignore = context.Check(Cuda().cuStreamDestroy(surplus), "destroying a stream");
}

bool StreamSet::Has(CUstream stream) {
  const std::lock_guard lock(mutex_);
  return made_.contains(stream);
}

void StreamSet::Wrap(Context& context, CUstream stream) {
  const std::lock_guard lock(mutex_);
  wrapped_[context.ordinal()].push_back(stream);
}

void StreamSet::Unwrap(Context& context, CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::vector<CUstream>& wrapped = wrapped_[context.ordinal()];
  wrapped.erase(std::ranges::find(wrapped, stream));
}

bool StreamSet::AreIdle(Context& context) {
  // Held during the queries, so that no stream is destroyed meanwhile.
  const std::lock_guard lock(mutex_);
  const auto is_idle = [&context](CUstream stream) {
    const CUresult code = Cuda().cuStreamQuery(stream);
    if (code != CUDA_ERROR_NOT_READY) std::ignore = context.Check(code, "querying a stream");
    return code == CUDA_SUCCESS;
  };
  return std::ranges::all_of(
             made_,
             [&](const auto& each) { return each.second.ordinal != context.ordinal() || is_idle(each.first); }) &&
         std::ranges::all_of(wrapped_[context.ordinal()], is_idle);
}

Status CheckForeign(Context& context, CUstream handle) {
  // Two wrappers of one of this library's streams would each assume that only their own work is in it.
  if (OwnStreams().Has(handle)) return {StatusCode::kArgument, "wrapping a stream that Millrace created"};
  // The per-thread default stream would be that of the channel's thread.
  constexpr uintptr_t kPerThread = 2;
  if (reinterpret_cast<uintptr_t>(handle) == kPerThread) {
    return {StatusCode::kUnsupported, "wrapping the per-thread default stream"};
  }
  if (handle == nullptr) return {};
  CUcontext owner = nullptr;
  const CUresult code = Cuda().cuStreamGetCtx(handle, &owner);
  if (code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_INVALID_VALUE) {
    return {StatusCode::kArgument, "wrapping a handle that is not a stream", static_cast<int32_t>(code)};
  }
  MR_TRY(context.Check(code, "finding the context of a stream"));
  if (owner == context.handle()) return {};
  return {StatusCode::kArgument, "wrapping a stream of another device"};
}

}  // namespace millrace::cuda
