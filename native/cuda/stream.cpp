// More than 400 lines: all of one class.
#include "cuda/stream.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/context_scope.h"
#include "cuda/device.h"
#include "cuda/driver_errors.h"
#include "cuda/event_handle.h"
#include "cuda/graph.h"
#include "cuda/library_kernel.h"
#include "cuda/memory.h"
#include "cuda/own_streams.h"

namespace millrace::cuda {

namespace {

using hal::Ticket;

CUdeviceptr ToDevice(const std::byte* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

/// More than the records of any stream.
constexpr uint64_t kMostRecords = uint64_t{1} << 40;

}  // namespace

uint64_t Stream::NextPlaces() {
  static std::atomic<uint64_t> last{0};
  return kMostRecords * ++last;
}

Result<std::unique_ptr<hal::Stream>> Stream::Create(StreamSupport support, const hal::StreamRequest& request,
                                                    CUdeviceptr word) {
  Context& context = *support.context;
  MR_TRY(context.Alive());
  CUstream handle = nullptr;
  if (request.foreign) {
    handle = reinterpret_cast<CUstream>(*request.foreign);
    MR_TRY(CheckForeign(context, handle));
    OwnStreams().Wrap(context, handle);
  } else {
    Result<CUstream> own =
        OwnStreams().Take(context, request.priority, support.partition == nullptr ? nullptr : support.partition->green);
    MR_TRY(own.status());
    handle = own.value();
  }
  return std::unique_ptr<hal::Stream>(new Stream(std::move(support), handle, request, word));
}

Stream::~Stream() {
  support_.copies->Forget(*this);
  if (is_foreign_) OwnStreams().Unwrap(context_, handle_);
  if (context_.is_lost()) return;
  const ContextScope scope(context_.handle());
  if (scope.code() != CUDA_SUCCESS) return;
  if (std::atomic_ref(slot_->device_word).load(std::memory_order_acquire) < signalled_.load()) {
    // The events completed before the word was written. The slot may go to another stream now, so this write must
    // complete first.
    std::ignore =
        context_.Check(is_foreign_ ? Cuda().cuEventSynchronize(word_event_) : Cuda().cuStreamSynchronize(handle_),
                       "waiting for the timeline word");
  }
  if (word_event_ != nullptr) std::ignore = context_.Check(Cuda().cuEventDestroy(word_event_), "destroying an event");
  events_.Destroy();
  if (!is_foreign_) OwnStreams().GiveBack(context_, handle_);
}

Status Stream::Prepare(Ticket ticket, CUevent* event) {
  const std::lock_guard lock(mutex_);
  if (!events_.is_started()) events_.StartAt(ticket);
  MR_CHECK(ticket == events_.last() + 1);
  const Ticket completed = Completed();
  if (!events_.HasRoom()) events_.Recycle(completed);
  MR_CHECK(events_.HasRoom());
  return context_.Check(events_.Acquire(completed, event), "creating an event");
}

Status Stream::Accept(Ticket ticket, CUevent event) {
  const std::lock_guard lock(mutex_);
  const CUresult code = Insist([&] { return Cuda().cuEventRecord(event, handle_); });
  if (code != CUDA_SUCCESS) {
    // The queued work's completion could not be observed, so its success would be useless.
    return context_.Lose(code, "recording an event");
  }
  events_.Add(ticket, event);
  return {};
}

Status Stream::Launch(Ticket ticket, const hal::LaunchRequest& request) {
  if (request.kernel->IsOfLibrary()) return LaunchCall(ticket, request);
  auto* kernel = static_cast<Kernel*>(request.kernel);
  MR_CHECK(kernel->context() == &context_);
  return Submit(ticket, Use::kWork, [&]() -> Status {
    MR_TRY(kernel->AllowShared(request.shared_bytes));
    const auto& [x, y, z] = request.grid;
    const hal::Dim3& block = request.block;
    void** const params = const_cast<void**>(request.params.data());
    if (request.is_cooperative) {
      if (support_.partition != nullptr)
        MR_TRY(support_.partition->CheckHolds(*kernel, request.grid, request.block, request.shared_bytes));
      return context_.Check(Cuda().cuLaunchCooperativeKernel(kernel->function(), x, y, z, block.x, block.y, block.z,
                                                             request.shared_bytes, handle_, params),
                            "launching a cooperative kernel");
    }
    return context_.Check(Cuda().cuLaunchKernel(kernel->function(), x, y, z, block.x, block.y, block.z,
                                                request.shared_bytes, handle_, params, nullptr),
                          "launching a kernel");
  });
}

Status Stream::LaunchCall(Ticket ticket, const hal::LaunchRequest& request) {
  auto& call = static_cast<LibraryKernel&>(*request.kernel);
  MR_CHECK(&call.context() == &context_);
  return Submit(ticket, Use::kWork, [&]() -> Status {
    std::unique_ptr<Memory> workspace;
    const uint64_t bytes = support_.has_pools ? call.WorkspaceBytes(request.params) : 0;
    if (bytes > 0) {
      Result<std::unique_ptr<Memory>> allocated = Memory::Allocate(support_.context, handle_, bytes, true);
      // Without it most calls take longer.
      if (allocated.ok()) {
        workspace = std::move(allocated).value();
      } else if (call.NeedsWorkspace()) {
        return allocated.status();
      }
    }
    std::byte* const address = workspace == nullptr ? nullptr : workspace->address();
    const Status status = call.CallAs(is_foreign_ ? 0 : first_place_ + ticket, handle_, request.params, address);
    if (workspace != nullptr) std::ignore = workspace->Free(handle_);
    return status;
  });
}

Status Stream::LaunchGraph(Ticket ticket, const hal::GraphLaunchRequest& request) {
  auto& graph = static_cast<Graph&>(*request.graph);
  MR_CHECK(&graph.home() == &context_);
  support_.copies->Note(*this, ticket, graph.copied_bytes());
  return Submit(ticket, Use::kWork, [&] { return graph.Launch(handle_, request.patches); });
}

Status Stream::UploadGraph(Ticket ticket, hal::Graph& uploaded) {
  auto& graph = static_cast<Graph&>(uploaded);
  MR_CHECK(&graph.home() == &context_);
  return Submit(ticket, Use::kWork, [&] { return graph.Upload(handle_); });
}

Status Stream::Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes, const hal::HostLeases&) {
  if (bytes == 0) return Nop(ticket);
  Result<std::shared_ptr<Context>> other = OtherOwner(dst, src);
  MR_TRY(other.status());
  if (other.value() != nullptr) {
    return Submit(ticket, Use::kWork, [&] {
      return copies_through_host_.CopyThere(support_.context, handle_, other.value(), ToDevice(dst), ToDevice(src),
                                            bytes);
    });
  }
  support_.copies->Note(*this, ticket, bytes);
  // Unified addressing tells the driver the direction; both sides are page-locked or device memory.
  return Submit(ticket, Use::kWork, [&] {
    return context_.Check(Cuda().cuMemcpyAsync(ToDevice(dst), ToDevice(src), bytes, handle_), "copying");
  });
}

Status Stream::CopyBatch(Ticket ticket, std::span<const hal::BatchedCopy> copies) {
  std::vector<CUdeviceptr> dsts;
  std::vector<CUdeviceptr> srcs;
  std::vector<size_t> sizes;
  uint64_t bytes = 0;
  for (const hal::BatchedCopy& copy : copies) {
    dsts.push_back(ToDevice(copy.dst));
    srcs.push_back(ToDevice(copy.src));
    sizes.push_back(copy.bytes);
    bytes += copy.bytes;
  }
  support_.copies->Note(*this, ticket, bytes);
  return Submit(ticket, Use::kWork, [&]() -> Status {
    // The driver's default stream takes no batch.
    CUresult code = CUDA_ERROR_NOT_FOUND;
    if (handle_ != nullptr && copies.size() > 1) {
      CUmemcpyAttributes attributes{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
      size_t first = 0;
      size_t failed = 0;
      code = Cuda().cuMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), copies.size(), &attributes, &first, 1,
                                       &failed, handle_);
    }
    if (code != CUDA_ERROR_NOT_FOUND && code != CUDA_ERROR_NOT_SUPPORTED)
      return context_.Check(code, "copying a batch");
    for (size_t n = 0; n < copies.size(); ++n)
      MR_TRY(context_.Check(Cuda().cuMemcpyAsync(dsts[n], srcs[n], sizes[n], handle_), "copying"));
    return {};
  });
}

Status Stream::Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) {
  if (count == 0) return Nop(ticket);
  const CUdeviceptr address = ToDevice(dst);
  const auto low = static_cast<uint32_t>(pattern);
  const auto high = static_cast<uint32_t>(pattern >> 32);
  return Submit(ticket, Use::kWork, [&]() -> Status {
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    switch (element_bytes) {
      case 1:
        code = Cuda().cuMemsetD8Async(address, static_cast<unsigned char>(pattern), count, handle_);
        break;
      case 2:
        code = Cuda().cuMemsetD16Async(address, static_cast<unsigned short>(pattern), count, handle_);
        break;
      case 4:
        code = Cuda().cuMemsetD32Async(address, low, count, handle_);
        break;
      case 8:
        if (low != high) return Fill64(address, pattern, count);
        code = Cuda().cuMemsetD32Async(address, low, 2 * count, handle_);
        break;
      default:
        MR_CHECK(!"the size of a fill's elements is 1, 2, 4 or 8 bytes");
    }
    return context_.Check(code, "filling");
  });
}

Status Stream::Fill64(CUdeviceptr dst, uint64_t pattern, uint64_t count) {
  const auto [kernel, blocks, block] = Fill64Launch(support_.built_ins, count);
  if (kernel == nullptr) return kNoFill64;
  void* params[] = {&dst, &pattern, &count};
  return context_.Check(
      Cuda().cuLaunchKernel(kernel->function(), blocks, 1, 1, block, 1, 1, 0, handle_, params, nullptr), "filling");
}

Status Stream::CopyPeer(Ticket ticket, const hal::PeerCopy& copy) {
  if (copy.bytes == 0) return Nop(ticket);
  const std::shared_ptr<Context>& to = static_cast<Device*>(copy.dst_device)->context();
  const std::shared_ptr<Context>& from = static_cast<Device*>(copy.src_device)->context();
  support_.copies->Note(*this, ticket, copy.bytes);
  return Submit(ticket, Use::kWork, [&]() -> Status {
    if (to->is_lost() || from->is_lost()) return {StatusCode::kUpstream, "copying from or to a lost device"};
    if (copy.route == protocol::PeerRoute::kStaged) {
      return copies_through_host_.Copy(support_.context, handle_, {ToDevice(copy.dst), to}, {ToDevice(copy.src), from},
                                       copy.bytes);
    }
    // The driver chooses the route by the contexts: direct with peer access, else through the host.
    const CUresult code = Cuda().cuMemcpyPeerAsync(ToDevice(copy.dst), to->handle(), ToDevice(copy.src), from->handle(),
                                                   copy.bytes, handle_);
    return CheckAmong(context_, {to.get(), from.get()}, code, "copying between devices");
  });
}

Status Stream::CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) {
  MR_TRY(context_.Alive());
  Result<std::shared_ptr<Context>> other = std::shared_ptr<Context>();
  {
    const ContextScope scope(context_.handle());
    MR_TRY(context_.Check(scope.code(), "making the context current"));
    other = OtherOwner(dst, src);
    MR_TRY(other.status());
  }
  if (other.value() == nullptr) {
    const CopiesInFlight::Unqueued copying(*support_.copies, bytes);
    return support_.pageable->Copy(handle_, dst, src, bytes);
  }
  // This stream is not involved: it is idle, and stays idle until the copy is complete.
  const Status status = PageableCopies::Of(other.value())->Copy(std::nullopt, dst, src, bytes);
  return status.code() == StatusCode::kDeviceLost
             ? Status(StatusCode::kUpstream, "copying from or to a lost device", status.driver_code())
             : status;
}

Result<std::shared_ptr<Context>> Stream::OtherOwner(const std::byte* dst, const std::byte* src) {
  if (!Context::HasSeveral()) return std::shared_ptr<Context>();
  for (const std::byte* end : {static_cast<const std::byte*>(dst), src}) {
    Result<std::shared_ptr<Context>> owner = Context::OwnerOf(end);
    if (owner.status().code() == StatusCode::kDeviceLost && !context_.is_lost()) {
      return Status(StatusCode::kUpstream, "copying from or to a lost device", owner.status().driver_code());
    }
    MR_TRY(owner.status());
    if (owner.value() == nullptr) continue;
    return owner.value() == support_.context ? std::shared_ptr<Context>() : owner.value();
  }
  return std::shared_ptr<Context>();
}

Status Stream::CopyStrided(Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                           std::span<const hal::StridedAxis> axes) {
  StridedPlan plan = PlanStrided(dst, src, element_bytes, 0, axes);
  if (IsRun(plan)) {
    return Copy(ticket, reinterpret_cast<std::byte*>(plan.dst), reinterpret_cast<const std::byte*>(plan.src),
                plan.count * plan.element_bytes);
  }
  return Submit(ticket, Use::kWork, [&] { return LaunchStrided(support_.built_ins, context_, handle_, plan); });
}

Status Stream::FillStrided(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                           std::span<const hal::StridedAxis> axes) {
  StridedPlan plan = PlanStrided(dst, nullptr, element_bytes, pattern, axes);
  if (IsRun(plan)) {
    // Uses the requested element size, because elements of the plan may be 8 bytes, which would need a kernel.
    return Fill(ticket, reinterpret_cast<std::byte*>(plan.dst), element_bytes, pattern,
                plan.count * plan.element_bytes / element_bytes);
  }
  return Submit(ticket, Use::kWork, [&] { return LaunchStrided(support_.built_ins, context_, handle_, plan); });
}

Status Stream::Wait(Ticket ticket, hal::Stream& other, Ticket until) {
  auto& awaited = static_cast<Stream&>(other);
  const bool is_over = &awaited == this || awaited.Completed() >= until;
  return Submit(ticket, is_over ? Use::kNothing : Use::kWait, [&] { return WaitFor(awaited, until); });
}

Status Stream::WaitFor(Stream& other, Ticket until) {
  // A stream is ordered after its own earlier work anyway.
  if (&other == this) return {};
  // The loss of the other device does not affect this one.
  const Status lost(StatusCode::kUpstream, "waiting for a stream of a lost device");
  if (other.context_.is_lost() && !context_.is_lost()) return lost;
  const std::lock_guard lock(other.mutex_);
  if (other.Completed() >= until) return {};
  // Never accepted: the other device was cancelled while this record was queued.
  if (until > other.events_.last()) return lost;
  const CUevent event = other.events_.Find(until);
  if (event == nullptr) return {};
  const CUresult code = Cuda().cuStreamWaitEvent(handle_, event, 0);
  // The fault may be either device's. This device's stream is queried before the other device is blamed.
  if (&other.context_ != &context_ && IsSticky(code) && Cuda().cuStreamQuery(handle_) != code) {
    std::ignore = other.context_.Check(code, "waiting for a stream of another device");
    return lost;
  }
  return context_.Check(code, "waiting for another stream");
}

Status Stream::Record(Ticket ticket, hal::EventHandle& event_handle) {
  return Submit(ticket, Use::kNothing, [&] {
    return context_.Check(Cuda().cuEventRecord(static_cast<EventHandle&>(event_handle).event(), handle_),
                          "recording an event");
  });
}

Status Stream::WaitEvent(Ticket ticket, hal::EventHandle& event_handle) {
  return Submit(ticket, Use::kWait, [&] {
    const CUevent event = static_cast<EventHandle&>(event_handle).event();
    return context_.Check(Insist([&] { return Cuda().cuStreamWaitEvent(handle_, event, 0); }), "waiting for an event");
  });
}

Status Stream::Nop(Ticket ticket) {
  return Submit(ticket, Use::kNothing, [] { return Status(); });
}

Result<std::unique_ptr<hal::Memory>> Stream::Allocate(Ticket ticket, uint64_t bytes) {
  std::unique_ptr<Memory> memory;
  MR_TRY(Submit(ticket, Use::kNothing, [&]() -> Status {
    Result<std::unique_ptr<Memory>> result = Memory::Allocate(support_.context, handle_, bytes, support_.has_pools);
    if (result.ok()) memory = std::move(result).value();
    return result.status();
  }));
  return std::unique_ptr<hal::Memory>(std::move(memory));
}

Status Stream::Free(Ticket ticket, std::unique_ptr<hal::Memory> memory) {
  std::unique_ptr<Memory> own(static_cast<Memory*>(memory.release()));
  if (!own->IsFreedLate()) return Submit(ticket, Use::kNothing, [&] { return own->Free(handle_); });
  const Status status = Submit(ticket, Use::kNothing, [&] {
    support_.reaper->FreeAfter(handle_, std::move(own));
    return Status();
  });
  // Destroying it here would block the channel.
  if (own != nullptr) support_.reaper->FreeAtEnd(std::move(own));
  return status;
}

Status Stream::Signal() {
  MR_TRY(context_.Alive());
  const std::shared_lock submitting(context_.submissions());
  if (WantedTimes() != protocol::DeviceTimes::kNone) times_.End();
  Ticket last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = events_.last();
  }
  if (last == signalled_.load(std::memory_order_relaxed) || !support_.can_write_words) return {};
  if (support_.copies->KeepWordsAway(*this)) return {};
  // After long work, words fill the driver's launch queue like launches, and a full queue blocks the channel. Waiting
  // threads can use the events; the channel signals again when it next checks the stream.
  Ticket& word = words_[words_written_ % words_.size()];
  if (word > Completed()) return {};
  // The event is created first, because the word's completion must be observable.
  if (is_foreign_ && word_event_ == nullptr) {
    MR_TRY(context_.Check(Cuda().cuEventCreate(&word_event_, CU_EVENT_DISABLE_TIMING), "creating an event"));
  }
  MR_TRY(context_.Check(Cuda().cuStreamWriteValue64(handle_, word_, last, CU_STREAM_WRITE_VALUE_DEFAULT),
                        "writing the timeline word"));
  signalled_.store(last, std::memory_order_release);
  word = last;
  ++words_written_;
  if (!is_foreign_) return {};
  const CUresult code = Insist([&] { return Cuda().cuEventRecord(word_event_, handle_); });
  return code == CUDA_SUCCESS ? Status() : context_.Lose(code, "recording an event");
}

// ── Progress, from words and events ────────────────────────────────────────────────────────────────────────────────

Ticket Stream::Completed() const noexcept {
  const Ticket device = std::atomic_ref(slot_->device_word).load(std::memory_order_acquire);
  const Ticket host = std::atomic_ref(slot_->host_word).load(std::memory_order_acquire);
  return std::max(device, host);
}

Result<Ticket> Stream::Resolve(Ticket wanted) {
  MR_TRY(context_.Alive());
  if (const Ticket completed = Completed(); completed >= wanted) return completed;
  // Words are far apart, so after a long wait the events tell the stream's progress.
  const bool is_long = long_wait_.IsOver(wanted);
  if (!is_long && WritesItself(wanted)) return Completed();
  const ContextScope scope(context_.handle());
  MR_TRY(context_.Check(scope.code(), "making the context current"));

  const std::lock_guard lock(mutex_);
  if (wanted > events_.last()) return Completed();
  bool is_complete = false;
  MR_TRY(Ask(wanted, &is_complete));
  if (is_complete) RaiseHostWord(wanted);
  if (is_long && !is_complete) MR_TRY(LookBelow(wanted));
  events_.Recycle(Completed());
  return Completed();
}

Status Stream::Query() {
  MR_TRY(context_.Alive());
  const std::lock_guard lock(mutex_);
  return WritesItself(events_.last()) ? Status() : LookBelow(events_.last() + 1);
}

bool Stream::WritesItself(Ticket ticket) const noexcept {
  return !support_.copies->AreSeveral() && signalled_.load(std::memory_order_acquire) == ticket;
}

Status Stream::LookBelow(Ticket ticket) {
  const Ticket known = Completed();
  Ticket low = known;    // Complete.
  Ticket high = ticket;  // Not complete.
  // Checks the next ticket first, and then the last: for a stream that is blocked, or at its end, these suffice.
  for (Ticket next = low + 1; next < high;) {
    bool is_complete = false;
    MR_TRY(Ask(next, &is_complete));
    (is_complete ? low : high) = next;
    next = low == known + 1 && high == ticket ? std::max(high - 1, low + 1) : low + (high - low + 1) / 2;
    if (high - low <= 1) break;
  }
  if (low > known) RaiseHostWord(low);
  return {};
}

bool Stream::HasCompleted(Ticket ticket) {
  if (Completed() >= ticket) return true;
  const std::lock_guard lock(mutex_);
  bool is_complete = false;
  // Of a stream that was lost, nobody waits for a copy.
  if (!Ask(ticket, &is_complete).ok()) return true;
  if (is_complete) RaiseHostWord(ticket);
  return is_complete;
}

Status Stream::Check() {
  MR_TRY(context_.Alive());
  const CUresult code = Cuda().cuStreamQuery(handle_);
  return code == CUDA_ERROR_NOT_READY ? Status() : context_.Check(code, "checking the stream for errors");
}

// ── Times of a recorded timeline ───────────────────────────────────────────────────────────────────────────────────

void Stream::TellTimes() {
  if (WantedTimes() == protocol::DeviceTimes::kNone) return;
  // Nobody may wait for this stream.
  std::ignore = Query();
  times_.Tell(Completed(), *sink_);
}

// ── Questions to the driver ────────────────────────────────────────────────────────────────────────────────────────

Status Stream::Ask(Ticket ticket, bool* is_complete) {
  const CUevent event = events_.Find(ticket);
  if (event == nullptr) {
    *is_complete = true;
    return {};
  }
  const CUresult code = Cuda().cuEventQuery(event);
  *is_complete = code == CUDA_SUCCESS;
  return code == CUDA_ERROR_NOT_READY ? Status() : context_.Check(code, "querying a stream");
}

void Stream::RaiseHostWord(Ticket completed) noexcept {
  const std::atomic_ref word(slot_->host_word);
  Ticket seen = word.load(std::memory_order_relaxed);
  while (seen < completed && !word.compare_exchange_weak(seen, completed, std::memory_order_release)) {
  }
}

}  // namespace millrace::cuda
