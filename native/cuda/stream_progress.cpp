// How far a CUDA stream has come: from its words and its events.

#include <algorithm>
#include <atomic>
#include <mutex>

#include "cuda/context_scope.h"
#include "cuda/stream.h"

namespace millrace::cuda {

using hal::Ticket;

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
