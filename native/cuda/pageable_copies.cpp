#include "cuda/pageable_copies.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <tuple>

#include "cuda/context_scope.h"
#include "cuda/driver_errors.h"
#include "cuda/own_streams.h"

namespace millrace::cuda {

PageableCopies::PageableCopies(std::shared_ptr<Context> context)
    : PageableCopies(std::move(context), HelpersFor(std::thread::hardware_concurrency())) {}

std::shared_ptr<PageableCopies> PageableCopies::Of(const std::shared_ptr<Context>& context) {
  // Never destroyed, because native threads may outlive static objects.
  static auto* mutex = new std::mutex;
  static auto* known = new std::array<std::weak_ptr<PageableCopies>, kMaxDevices>;
  const std::lock_guard lock(*mutex);
  std::weak_ptr<PageableCopies>& entry = (*known)[context->ordinal()];
  std::shared_ptr<PageableCopies> pageable = entry.lock();
  if (pageable == nullptr) entry = pageable = std::make_shared<PageableCopies>(context);
  return pageable;
}

PageableCopies::~PageableCopies() {
  if (context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (hidden_ != nullptr) OwnStreams().GiveBack(*context_, hidden_);
  for (SlotPair& pair : pairs_) {
    for (Slot& slot : pair.slots) {
      if (slot.event == nullptr) continue;
      std::ignore = context_->Check(Cuda().cuEventDestroy(slot.event), "destroying an event");
    }
  }
}

Status PageableCopies::Copy(std::optional<CUstream> stream, std::byte* dst, const std::byte* src, uint64_t bytes) {
  MR_TRY(context_->Alive());
  if (bytes == 0) return {};
  const std::lock_guard call_lock(call_mutex_);
  Call call;
  call.dst = dst;
  call.src = src;
  call.bytes = bytes;
  // Small copies are divided among the pairs too.
  constexpr uint64_t kPage = 4096;
  const uint64_t share = bytes / (2 * pairs_.size()) / kPage * kPage;
  call.chunk_bytes = std::clamp(share, kSmallestChunk, kSlotBytes);
  {
    const ContextScope scope(context_->handle());
    MR_TRY(context_->Check(scope.code(), "making the context current"));
    if (!stream && hidden_ == nullptr) {
      Result<CUstream> hidden = OwnStreams().Take(*context_, 0);
      MR_TRY(hidden.status());
      hidden_ = hidden.value();
    }
    call.stream = stream.value_or(hidden_);
    // The driver does not know pageable memory.
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    const CUresult code =
        Cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(dst));
    if (code != CUDA_ERROR_INVALID_VALUE) MR_TRY(context_->Check(code, "finding the device address of a copy"));
    call.is_upload = code == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
  }
  status_ = {};
  const auto run = [&](unsigned n) {
    SlotPair& pair = pairs_[n];
    const Status status = RunPair(pair, call);
    // A helper without memory for its slots has taken no chunk: the others move its share.
    if (!status.ok() && (n == 0 || pair.slots.back().event != nullptr)) Fail(call, status);
  };
  // Where the caller's slots could not be locked, those of the others cannot either.
  const LockedBlock* const own = pairs_.front().pages.get();
  if (bytes > call.chunk_bytes && (own == nullptr || own->is_locked())) {
    helpers_.Run(run);
  } else {
    run(0);
  }
  return status_;
}

void PageableCopies::Fail(Call& call, Status status) {
  const std::lock_guard lock(mutex_);
  call.has_failed.store(true, std::memory_order_relaxed);
  if (status_.ok()) status_ = status;
}

Status PageableCopies::Prepare(SlotPair& pair) {
  if (pair.pages == nullptr) {
    // Without locked slots, the calling thread copies alone.
    const bool may_be_unlocked = &pair == &pairs_.front();
    Result<std::unique_ptr<LockedBlock>> pages =
        LockedBlock::Allocate(context_, pair.slots.size() * kSlotBytes, may_be_unlocked);
    MR_TRY(pages.status());
    pair.pages = std::move(pages).value();
    for (size_t n = 0; n < pair.slots.size(); ++n) pair.slots[n].data = pair.pages->data() + n * kSlotBytes;
  }
  for (Slot& slot : pair.slots) {
    if (slot.event != nullptr) continue;
    MR_TRY(context_->Check(Cuda().cuEventCreate(&slot.event, CU_EVENT_DISABLE_TIMING), "creating an event"));
  }
  return {};
}

Status PageableCopies::RunPair(SlotPair& pair, Call& call) {
  const ContextScope scope(context_->handle());
  MR_TRY(context_->Check(scope.code(), "making the context current"));
  MR_TRY(Prepare(pair));
  const Status status = MoveChunks(pair, call);
  if (status.ok()) return {};
  call.has_failed.store(true, std::memory_order_relaxed);
  // The copy engine must have finished with the slots before they are reused.
  for (Slot& slot : pair.slots) {
    if (slot.is_busy && !context_->is_lost()) {
      std::ignore = context_->Check(Cuda().cuEventSynchronize(slot.event), "waiting for a copy");
    }
    slot.is_busy = false;
  }
  return status;
}

Status PageableCopies::MoveChunks(SlotPair& pair, Call& call) {
  size_t turn = 0;
  while (!call.has_failed.load(std::memory_order_relaxed)) {
    const uint64_t offset = call.next.fetch_add(call.chunk_bytes, std::memory_order_relaxed);
    if (offset >= call.bytes) break;
    Slot& slot = pair.slots[turn];
    MR_TRY(Settle(slot, call));
    MR_TRY(Start(slot, call, offset, pair.pages->is_locked()));
    turn = 1 - turn;
  }
  // The older slot first.
  MR_TRY(Settle(pair.slots[turn], call));
  return Settle(pair.slots[1 - turn], call);
}

Status PageableCopies::Start(Slot& slot, Call& call, uint64_t offset, bool is_locked) {
  const uint64_t bytes = std::min(call.chunk_bytes, call.bytes - offset);
  if (call.is_upload) std::memcpy(slot.data, call.src + offset, bytes);
  const auto device = reinterpret_cast<CUdeviceptr>(call.is_upload ? call.dst + offset : call.src + offset);
  const auto host = reinterpret_cast<CUdeviceptr>(slot.data);
  const auto copy = [&]() -> CUresult {
    if (is_locked && call.is_upload) return Cuda().cuMemcpyAsync(device, host, bytes, call.stream);
    if (is_locked) return Cuda().cuMemcpyAsync(host, device, bytes, call.stream);
    // The driver takes pageable memory here, and returns when it has no more use for it.
    if (call.is_upload) return Cuda().cuMemcpyHtoDAsync(device, slot.data, bytes, call.stream);
    return Cuda().cuMemcpyDtoHAsync(slot.data, device, bytes, call.stream);
  };
  MR_TRY(context_->Check(copy(), is_locked ? "copying through page-locked memory" : "copying pageable memory"));
  const CUresult code = Insist([&] { return Cuda().cuEventRecord(slot.event, call.stream); });
  // The queued copy's completion could not be observed, so the slot would never be safe to reuse.
  if (code != CUDA_SUCCESS) return context_->Lose(code, "recording an event");
  slot.is_busy = true;
  slot.offset = offset;
  return {};
}

Status PageableCopies::Settle(Slot& slot, Call& call) {
  if (!slot.is_busy) return {};
  MR_TRY(context_->Check(Cuda().cuEventSynchronize(slot.event), "waiting for a copy"));
  slot.is_busy = false;
  if (call.is_upload) return {};
  std::memcpy(call.dst + slot.offset, slot.data, std::min(call.chunk_bytes, call.bytes - slot.offset));
  return {};
}

}  // namespace millrace::cuda
