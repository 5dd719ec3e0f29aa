#include "cuda/copies_through_host.h"

#include <algorithm>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/driver_errors.h"
#include "cuda/own_streams.h"

namespace millrace::cuda {

namespace {

/// A block holds a chunk. Larger copies use larger chunks, so that a copy takes few driver calls: about a thousand can
/// be queued on a waiting stream before a call blocks.
constexpr uint64_t kSmallestBlock = 4 << 20;
constexpr uint64_t kLargestBlock = 64 << 20;
constexpr uint64_t kChunksPerCopy = 64;

constexpr uint64_t BlockFor(uint64_t bytes) {
  return std::clamp(bytes / kChunksPerCopy, kSmallestBlock, kLargestBlock);
}

constexpr Status kLostEnd(StatusCode::kUpstream, "copying from or to a lost device");

}  // namespace

Status CheckAmong(Context& own, std::initializer_list<Context*> others, CUresult code, const char* note) {
  if (!IsSticky(code)) return own.Check(code, note);
  // The error may come from any of the contexts, so each one is asked. A device that answers is intact.
  if (!own.Ask().ok()) return own.Alive();
  for (Context* other : others) {
    if (other != &own && !other->Ask().ok()) return kLostEnd;
  }
  return own.Lose(code, note);
}

CopiesThroughHost::~CopiesThroughHost() {
  for (const std::unique_ptr<Leg>& leg : legs_) Dismantle(*leg);
}

void CopiesThroughHost::Dismantle(Leg& leg) {
  if (leg.turn != nullptr && !own_->is_lost()) {
    const ContextScope scope(own_->handle());
    std::ignore = own_->Check(Cuda().cuEventDestroy(leg.turn), "destroying an event");
  }
  if (leg.context->is_lost()) return;
  const ContextScope scope(leg.context->handle());
  if (leg.stream != nullptr) OwnStreams().GiveBack(*leg.context, leg.stream);
  if (leg.done != nullptr) std::ignore = leg.context->Check(Cuda().cuEventDestroy(leg.done), "destroying an event");
}

Status CopiesThroughHost::Copy(const std::shared_ptr<Context>& own, CUstream stream, End dst, End src, uint64_t bytes) {
  own_ = own;
  Result<Leg*> down = LegOf(*own, src.context);
  MR_TRY(down.status());
  Result<Leg*> up = LegOf(*own, dst.context);
  MR_TRY(up.status());
  MR_CHECK(HasRoom(bytes));
  const LockedBlock& block = *blocks_.back();
  const auto middle = reinterpret_cast<CUdeviceptr>(block.data());
  for (uint64_t offset = 0; offset < bytes; offset += block.bytes()) {
    const uint64_t chunk = std::min(block.bytes(), bytes - offset);
    MR_TRY(Step(*own, stream, down.value(), middle, src.address + offset, chunk));
    MR_TRY(Step(*own, stream, up.value(), dst.address + offset, middle, chunk));
  }
  return {};
}

Status CopiesThroughHost::CopyThere(const std::shared_ptr<Context>& own, CUstream stream,
                                    const std::shared_ptr<Context>& there, CUdeviceptr dst, CUdeviceptr src,
                                    uint64_t bytes) {
  own_ = own;
  Result<Leg*> leg = LegOf(*own, there);
  MR_TRY(leg.status());
  return Step(*own, stream, leg.value(), dst, src, bytes);
}

bool CopiesThroughHost::HasRoom(uint64_t bytes) const {
  return bytes == 0 || (!blocks_.empty() && blocks_.back()->bytes() >= BlockFor(bytes));
}

Status CopiesThroughHost::MakeRoom(const std::shared_ptr<Context>& own, uint64_t bytes) {
  if (HasRoom(bytes)) return {};
  // Earlier copies may still use the existing blocks.
  Result<std::unique_ptr<LockedBlock>> block = LockedBlock::Allocate(own, BlockFor(bytes));
  MR_TRY(block.status());
  blocks_.push_back(std::move(block).value());
  return {};
}

Result<CopiesThroughHost::Leg*> CopiesThroughHost::LegOf(Context& own, const std::shared_ptr<Context>& context) {
  if (context.get() == &own) return static_cast<Leg*>(nullptr);
  if (context->is_lost()) return kLostEnd;
  const auto found = std::ranges::find_if(legs_, [&](const auto& leg) { return leg->context == context; });
  if (found != legs_.end()) return found->get();
  const auto check = [&](CUresult code, const char* note) {
    const Status status = context->Check(code, note);
    return status.code() == StatusCode::kDeviceLost ? kLostEnd : status;
  };
  legs_.push_back(std::make_unique<Leg>(Leg{context, nullptr, nullptr, nullptr}));
  Leg& leg = *legs_.back();
  Status status = own.Check(Cuda().cuEventCreate(&leg.turn, CU_EVENT_DISABLE_TIMING), "creating an event");
  if (status.ok()) {
    const ContextScope scope(context->handle());
    status = check(scope.code(), "making the context current");
    if (status.ok()) {
      Result<CUstream> hidden = OwnStreams().Take(*context, 0);
      status = hidden.status();
      if (status.code() == StatusCode::kDeviceLost) status = kLostEnd;
      if (status.ok()) leg.stream = hidden.value();
    }
    if (status.ok()) status = check(Cuda().cuEventCreate(&leg.done, CU_EVENT_DISABLE_TIMING), "creating an event");
  }
  if (status.ok()) return &leg;
  Dismantle(leg);
  legs_.pop_back();
  return status;
}

Status CopiesThroughHost::Step(Context& own, CUstream stream, Leg* leg, CUdeviceptr dst, CUdeviceptr src,
                               uint64_t bytes) {
  if (leg == nullptr) return own.Check(Cuda().cuMemcpyAsync(dst, src, bytes, stream), "copying through host memory");
  Context& other = *leg->context;
  MR_TRY(own.Check(Cuda().cuEventRecord(leg->turn, stream), "recording an event"));
  CUresult code = CUDA_SUCCESS;
  bool is_queued = false;
  {
    const std::shared_lock submitting(other.submissions());
    const ContextScope scope(other.handle());
    code = scope.code();
    if (code == CUDA_SUCCESS) code = Cuda().cuStreamWaitEvent(leg->stream, leg->turn, 0);
    if (code == CUDA_SUCCESS) code = Cuda().cuMemcpyAsync(dst, src, bytes, leg->stream);
    is_queued = code == CUDA_SUCCESS;
    if (is_queued) code = Insist([&] { return Cuda().cuEventRecord(leg->done, leg->stream); });
  }
  if (code == CUDA_SUCCESS) code = Insist([&] { return Cuda().cuStreamWaitEvent(stream, leg->done, 0); });
  // The stream would go on while the queued copy still reads and writes.
  if (is_queued && code != CUDA_SUCCESS && !IsSticky(code)) return own.Lose(code, "copying through host memory");
  return CheckAmong(own, {&other}, code, "copying through host memory");
}

}  // namespace millrace::cuda
