#include "cuda/ticket_times.h"

#include <algorithm>
#include <optional>

namespace millrace::cuda {

using hal::Ticket;
using protocol::DeviceTimes;

void TicketTimes::Before(Ticket ticket, Use use, Ticket completed) {
  if (ticket != last_ + 1) {
    // Recorded from here on, perhaps behind work that is not.
    Forget();
    if (completed + 1 < ticket) begin_ = Mark();
    return;
  }
  // Of an idle stream: it was found idle before End was called.
  if (use == Use::kWait || (use == Use::kWork && completed >= last_work_)) End();
}

void TicketTimes::After(Ticket ticket, Use use, DeviceTimes wanted) {
  const uint64_t now = hal::SteadyNow();
  tickets_.push_back({ticket, now, use != Use::kNothing, std::exchange(begin_, nullptr), nullptr});
  last_ = ticket;
  if (use == Use::kNothing) return;
  last_work_ = ticket;
  ++unmarked_;
  if (NeedsMark(use, now, wanted)) End();
}

bool TicketTimes::NeedsMark(Use use, uint64_t now, DeviceTimes wanted) const {
  if (use == Use::kWait || wanted == DeviceTimes::kEach || unmarked_ >= kMostShare || works_ == 0) return true;
  if (began_soon_) return now - clock_->asked() >= kIssueOfMark;
  return unmarked_ * work_ / works_ >= kWorkOfMark;
}

void TicketTimes::End() {
  if (unmarked_ == 0) return;
  if (const CUevent end = Mark(); end != nullptr) {
    tickets_.back().end = end;
    unmarked_ = 0;
  }
}

CUevent TicketTimes::Mark() {
  Result<CUevent> event = clock_->events().Take();
  // A timeline with a gap is better than an operation that fails for it.
  if (!event.ok()) return nullptr;
  if (Cuda().cuEventRecord(event.value(), stream_) == CUDA_SUCCESS) {
    clock_->NoteAsked(hal::SteadyNow());
    return event.value();
  }
  clock_->events().Return(event.value());
  return nullptr;
}

void TicketTimes::Tell(Ticket completed, hal::ProgressSink& sink) {
  if (tickets_.empty()) return;
  if (!clock_->HasMark()) {
    // The control thread has other things to do.
    if (!AreMany() || !clock_->Align().ok()) return;
  }
  while (!tickets_.empty() && tickets_.front().ticket <= completed) {
    size_t count = 1;
    if (tickets_.front().is_work) {
      while (count <= tickets_.size() && tickets_[count - 1].end == nullptr) ++count;
      if (count > tickets_.size() || tickets_[count - 1].ticket > completed) return;
    }
    if (!TellShare(count, sink)) return;
  }
}

bool TicketTimes::TellShare(size_t count, hal::ProgressSink& sink) {
  const TicketTime& first = tickets_.front();
  if (first.begin != nullptr) ended_ = std::max(ended_, clock_->TimeOf(first.begin).value_or(0));
  const uint64_t begin = std::max(ended_, first.issued);
  uint64_t end = begin;
  if (const CUevent mark = tickets_[count - 1].end; mark != nullptr) {
    const std::optional<uint64_t> time = clock_->TimeOf(mark);
    // It was recorded behind the event that tells that the ticket has completed.
    if (!time) return false;
    // The clocks of the device and the host differ by microseconds.
    end = std::max(begin, *time);
  }
  // Each took equally long, and none began before the driver had it.
  uint64_t works = 0;
  uint64_t each = end - begin;
  for (size_t n = count; n-- > 0;) {
    const TicketTime& time = tickets_[n];
    works += time.is_work ? 1 : 0;
    const uint64_t from = n == 0 ? begin : std::clamp(time.issued, begin, end);
    if (works > 0) each = std::min(each, (end - from) / works);
  }
  if (works > 0) {
    constexpr double kKept = 0.875;
    began_soon_ = begin < first.issued + kSoon;
    work_ = work_ * kKept + static_cast<double>(end - begin);
    works_ = works_ * kKept + static_cast<double>(works);
  }
  ended_ = begin;
  for (; count > 0; --count) {
    const TicketTime& time = tickets_.front();
    const uint64_t from = std::clamp(time.issued, ended_, std::max(ended_, end));
    ended_ = !time.is_work ? from : time.end != nullptr ? end : std::min(from + each, end);
    sink.Ran(time.ticket, from, ended_, static_cast<uint16_t>(works));
    DropFirst();
  }
  return true;
}

void TicketTimes::DropFirst() {
  for (const CUevent event : {tickets_.front().begin, tickets_.front().end}) {
    if (event != nullptr) clock_->events().Return(event);
  }
  tickets_.pop_front();
}

void TicketTimes::Forget() {
  while (!tickets_.empty()) DropFirst();
  if (begin_ != nullptr) clock_->events().Return(std::exchange(begin_, nullptr));
  last_ = last_work_ = 0;
  unmarked_ = 0;
  ended_ = 0;
  work_ = works_ = 0;
  began_soon_ = false;
}

}  // namespace millrace::cuda
