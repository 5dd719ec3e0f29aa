// More than 400 lines: all of one class.
#include "cpu/stream.h"

#include <algorithm>
#include <utility>

#include "cpu/dynamic_parallelism.h"
#include "cpu/launch_item.h"
#include "cpu/module.h"
#include "cpu/strided.h"

namespace millrace::cpu {
namespace {

using hal::Ticket;

// Work that a helper thread runs itself, since waking another thread would take longer.
constexpr uint64_t kLightFreeBytes = 1 << 20;
// How many of the last items an allocation looks at for a free: a temporary array is freed a few operations later.
constexpr size_t kFreesLookedAt = 64;
// A helper thread has other work, so it leaves a longer run of light items to the pool.
constexpr uint32_t kHelperItems = 32;
// Light items between two checks for a rival; after any other item there is always a check.
constexpr uint32_t kTurnItems = 32;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
// clang before 17 does not make it.
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Other threads and JavaScript read these words.
std::atomic_ref<uint64_t> Word(uint64_t& word) {
  return std::atomic_ref<uint64_t>(word);
}

}  // namespace

StreamCore::StreamCore(const hal::StreamRequest& request, std::shared_ptr<ThreadPool> pool)
    : Runnable(request.priority),
      pool_(std::move(pool)),
      fuzzer_(pool_->fuzzer()),
      slot_(request.slot),
      sink_(request.sink) {
  MR_CHECK(request.priority >= kGreatestPriority && request.priority <= kLeastPriority);
  MR_CHECK(slot_ != nullptr && sink_ != nullptr);
}

void StreamCore::Submit(Ticket ticket, Work work) {
  {
    std::lock_guard lock(mutex_);
    // Rule 3. The first ticket may have any value: a slot's next stream continues its tickets.
    MR_CHECK(accepted_ == 0 ? ticket > 0 : ticket == accepted_ + 1);
    accepted_ = ticket;
    items_.push_back({ticket, std::move(work)});
    if (is_driven_) return;
    is_driven_ = true;
  }
  Visit();
}

std::unique_ptr<hal::Memory> StreamCore::TakeFreed(uint64_t reusable_bytes) {
  if (reusable_bytes == 0) return nullptr;
  std::lock_guard lock(mutex_);
  const size_t end = items_.size() - std::min(items_.size(), kFreesLookedAt);
  for (size_t at = items_.size(); at > end; --at) {
    Free* const free = std::get_if<Free>(&items_[at - 1].work);
    if (free != nullptr && free->reusable_bytes == reusable_bytes && free->memory != nullptr) {
      return std::move(free->memory);
    }
  }
  return nullptr;
}

void StreamCore::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !is_driven_; });
}

bool StreamCore::IsDriven() {
  std::lock_guard lock(mutex_);
  return is_driven_;
}

bool StreamCore::HasAccepted(Ticket ticket) {
  std::lock_guard lock(mutex_);
  return ticket <= accepted_;
}

Ticket StreamCore::Completed() const {
  return std::max(Word(slot_->device_word).load(std::memory_order_acquire),
                  Word(slot_->host_word).load(std::memory_order_acquire));
}

void StreamCore::Run() {
  Cores released;
  Drive(Driver::kPoolThread, released);
  DriveReleased(released);
}

void StreamCore::Visit() {
  Cores released;
  Drive(Driver::kHelper, released);
  DriveReleased(released);
}

// Drives the streams whose waits this thread completed. They may complete further waits, whose streams join the list: a
// chain of any length costs no stack.
void StreamCore::DriveReleased(Cores& released) const {
  while (!released.empty()) {
    if (fuzzer_) std::swap(released[fuzzer_->Below(static_cast<uint32_t>(released.size()))], released.back());
    std::shared_ptr<StreamCore> stream = std::move(released.back());
    released.pop_back();
    stream->Drive(Driver::kHelper, released);
  }
}

// The calling thread drives this stream until this returns. `is_driven_` is true.
void StreamCore::Drive(Driver driver, Cores& released) {
  if (fuzzer_ && driver == Driver::kHelper && fuzzer_->RefusesHelper()) return pool_->Schedule(shared_from_this());
  if (!has_current_ && !TakeNext(released)) return;
  for (uint32_t run = 1;; ++run) {
    const bool is_light = IsLight();
    if (IsDropped(current_.ticket)) {
      Drop();
      if (!TakeNext(released)) return;
      continue;
    }
    if (driver == Driver::kHelper && (!is_light || run > kHelperItems)) {
      pool_->Schedule(shared_from_this());
      return;
    }
    if (fuzzer_) fuzzer_->Pause();
    if (began_ == 0 && sink_->WantsTimes()) began_ = hal::SteadyNow();
    if (!RunItem(driver)) return;
    // An item that was stopped in the middle has not completed.
    if (IsDropped(current_.ticket)) {
      Drop();
    } else {
      Report();
    }
    const bool is_driven = TakeNext(released);
    // Released streams go before this stream's next item, which may take long. A helper thread's caller drives them.
    if (driver == Driver::kPoolThread) DriveReleased(released);
    if (!is_driven) return;
    if (driver == Driver::kPoolThread && MustEndTurn(is_light, run)) return pool_->PutBack(shared_from_this());
  }
}

// After the `run`th item of this turn.
bool StreamCore::MustEndTurn(bool is_light, uint32_t run) const {
  if (fuzzer_ && fuzzer_->EndsTurn()) return true;
  return (!is_light || run % kTurnItems == 0) && pool_->HasRival(priority());
}

bool StreamCore::IsLight() const {
  return std::visit(Overloaded{
                        [](const Nop&) { return true; },
                        [](const Fill& fill) { return fill.count * fill.element_bytes <= kLightBytes; },
                        [](const Copy& copy) { return copy.bytes <= kLightBytes; },
                        [](const OfHost& copy) { return copy->bytes() <= kLightBytes; },
                        // Returning many pages to the system takes long.
                        [](const Free& free) { return free.is_light || free.memory == nullptr; },
                        [](const Wait&) { return true; },
                        [](const Stamp&) { return true; },
                        [](const Parts& parts) { return parts->IsLight(); },
                        [](const CooperativeRun&) { return false; },
                        [](const OfGraph& launch) { return launch->graph->IsLight(); },
                    },
                    current_.work);
}

// True: the item has finished. False: another thread drives this stream now, or will.
bool StreamCore::RunItem(Driver driver) {
  return std::visit(Overloaded{
                        [](Nop&) { return true; },
                        [](Fill& fill) {
                          RunFill(fill);
                          return true;
                        },
                        [](Copy& copy) {
                          RunCopy(copy);
                          return true;
                        },
                        [](OfHost& copy) {
                          copy->Run();
                          return true;
                        },
                        [](Free& free) {
                          free.memory.reset();
                          return true;
                        },
                        [this](Wait& wait) { return RunWait(wait); },
                        [](Stamp& stamp) {
                          stamp->Take();
                          return true;
                        },
                        [this, driver](Parts&) { return RunParts(driver); },
                        [this](CooperativeRun&) { return RunCooperative(); },
                        [this, driver](OfGraph&) { return RunGraph(driver); },
                    },
                    current_.work);
}

// Once registered, another thread may drive this stream before the call returns, and destroy `wait`.
bool StreamCore::RunWait(const Wait& wait) {
  const std::shared_ptr<StreamCore> other = wait.other;
  const std::shared_ptr<StreamCore> self = shared_from_this();
  const Ticket ticket = current_.ticket;
  if (!other->WakeAt(wait.until, self)) return true;
  // DropAfter checks the waiters once, possibly before this registration; so check again here.
  return IsDropped(ticket) && other->Leave(*this);
}

bool StreamCore::RunParts(Driver driver) {
  const Parts parts = std::get<Parts>(current_.work);
  // The thread that finishes a shared item calls this again.
  if (!parts->IsFinished()) {
    parts->SetCancellation({&last_kept_, current_.ticket});
    if (driver == Driver::kHelper) {
      parts->RunHere();
    } else if (!parts->RunOn(*pool_, shared_from_this())) {
      return false;
    }
  }
  if (!parts->IsOver(shared_from_this())) return false;
  TellFailure(parts->Failure());
  return true;
}

// The thread of the last block schedules the stream on the pool, which calls this again.
bool StreamCore::RunCooperative() {
  const CooperativeRun run = std::get<CooperativeRun>(current_.work);
  if (run.grid->IsFinished()) {
    TellFailure(run.grid->Failure());
    return true;
  }
  run.grid->SetCancellation({&last_kept_, current_.ticket});
  run.threads->Run(run.grid, *pool_, shared_from_this());
  return false;
}

// The thread that finishes the graph's last node calls this again.
bool StreamCore::RunGraph(Driver driver) {
  const OfGraph launch = std::get<OfGraph>(current_.work);
  if (!std::exchange(launch->has_begun, true)) {
    const NodeRun run{{&last_kept_, current_.ticket}, priority()};
    if (!launch->graph->Begin(run, launch->patches, shared_from_this(), pool_, driver == Driver::kPoolThread))
      return false;
  }
  TellFailure(launch->graph->Failure());
  return true;
}

// Before the ticket counts as completed.
void StreamCore::TellFailure(const std::optional<hal::KernelFailure>& failure) {
  if (failure) sink_->Failed(current_.ticket, *failure);
}

// Ends the current item without a report: its ticket never completes.
void StreamCore::Drop() {
  began_ = 0;
  std::lock_guard lock(mutex_);
  dropped_.push_back(std::exchange(current_, Item{}));
  has_current_ = false;
}

// The store to the completion word publishes the item's effects before the sink is notified.
void StreamCore::Report() {
  const Ticket ticket = current_.ticket;
  current_.work = Nop{};
  has_current_ = false;
  if (const uint64_t began = std::exchange(began_, 0); began != 0) sink_->Ran(ticket, began, hal::SteadyNow(), 1);
  if (fuzzer_) fuzzer_->Pause();
  completed_.store(ticket, std::memory_order_release);
  Word(slot_->device_word).store(ticket, std::memory_order_release);
  if (fuzzer_) fuzzer_->Pause();
  sink_->Progress(ticket);
}

// Collects the streams whose waits are complete, and takes the next item. False: there is none, and no thread drives
// the stream. `completed_` is stored before the lock is taken, and WakeAt reads it under the lock, so that no waiter is
// missed.
bool StreamCore::TakeNext(Cores& released) {
  const Ticket completed = completed_.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  while (!waiters_.empty() && waiters_.front().until <= completed) {
    std::pop_heap(waiters_.begin(), waiters_.end());
    released.push_back(std::move(waiters_.back().stream));
    waiters_.pop_back();
  }
  has_current_ = !items_.empty();
  if (!has_current_) {
    is_driven_ = false;
    idle_.notify_all();
    return false;
  }
  current_ = std::move(items_.front());
  items_.pop_front();
  if (const Wait* const wait = std::get_if<Wait>(&current_.work)) {
    waiting_ = {current_.ticket, wait->other, wait->until};
  }
  return true;
}

// Registers `stream`: the thread that completes `until` here will drive it. False: it is already complete.
bool StreamCore::WakeAt(Ticket until, std::shared_ptr<StreamCore> stream) {
  std::lock_guard lock(mutex_);
  if (completed_.load(std::memory_order_acquire) >= until) return false;
  waiters_.push_back({until, std::move(stream)});
  std::push_heap(waiters_.begin(), waiters_.end());
  return true;
}

// ── Calls of the channel: each makes an item of its request and appends it ─────────────────────────────────────────

Status CpuStream::Launch(Ticket ticket, const hal::LaunchRequest& request) {
  const auto& kernel = *static_cast<const CpuKernel*>(request.kernel);
  MR_TRY(kernel.CheckParams(request.params.size(), request.wide));
  if (request.is_cooperative || kernel.NeedsResident(request.grid)) return LaunchCooperative(ticket, request);
  core_->Submit(ticket, MakeLaunchItem(request));
  return {};
}

Status CpuStream::LaunchGraph(Ticket ticket, const hal::GraphLaunchRequest& request) {
  core_->Submit(ticket, std::make_shared<GraphLaunch>(static_cast<const CpuGraph*>(request.graph)->core(), request));
  return {};
}

Status CpuStream::LaunchCooperative(Ticket ticket, const hal::LaunchRequest& request) {
  if (static_cast<const CpuKernel*>(request.kernel)->is_launching()) {
    return {StatusCode::kUnsupported, "launching kernels from a cooperative launch"};
  }
  auto grid = std::make_shared<CooperativeGrid>(request, core_->fuzzer());
  MR_TRY(threads_->Grow(most_cooperative_blocks_, grid->block_count()));
  most_cooperative_blocks_ = std::max(most_cooperative_blocks_, grid->block_count());
  core_->Submit(ticket, StreamCore::CooperativeRun{std::move(grid), threads_});
  return {};
}

std::shared_ptr<LaunchItem> CpuStream::MakeLaunchItem(const hal::LaunchRequest& request) const {
  if (!static_cast<const CpuKernel*>(request.kernel)->is_launching()) {
    return std::make_shared<LaunchItem>(request, core_->priority());
  }
  const auto hidden = request.params.last(2);
  auto* slot = *static_cast<protocol::FaultSlot**>(hidden[0]);
  auto* fault_word = *static_cast<uint32_t**>(hidden[1]);
  auto launch_tree = std::make_shared<LaunchTree>(core_->pool(), grid_limits_, slot, fault_word, core_->priority());
  return std::make_shared<LaunchTreeGrid>(request, std::move(launch_tree));
}

Status CpuStream::Copy(Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
                       const hal::HostLeases& host) {
  const cpu::Copy copy{dst, src, bytes};
  if (bytes >= kSweepBytes) {
    core_->Submit(ticket, std::make_shared<ParallelCopy>(HostCopy(copy, host), core_->priority()));
  } else if (host.HasAny()) {
    core_->Submit(ticket, std::make_unique<const HostCopy>(copy, host));
  } else {
    core_->Submit(ticket, copy);
  }
  return {};
}

Status CpuStream::CopyBatch(Ticket ticket, std::span<const hal::BatchedCopy> copies) {
  core_->Submit(ticket, std::make_shared<BatchCopy>(copies, core_->priority()));
  return {};
}

Status CpuStream::Fill(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) {
  const cpu::Fill fill{dst, element_bytes, pattern, count};
  if (count * element_bytes < kSweepBytes) {
    core_->Submit(ticket, fill);
  } else {
    core_->Submit(ticket, std::make_shared<ParallelFill>(fill, core_->priority()));
  }
  return {};
}

Status CpuStream::CopyPeer(Ticket ticket, const hal::PeerCopy& copy) {
  return Copy(ticket, copy.dst, copy.src, copy.bytes);
}

Status CpuStream::CopyStrided(Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                              std::span<const hal::StridedAxis> axes) {
  const StridedShape shape(dst, src, element_bytes, axes);
  if (shape.IsRun()) return Copy(ticket, shape.dst(), shape.src(), shape.element_count() * element_bytes);
  core_->Submit(ticket, std::make_shared<StridedSweep>(shape, std::nullopt, core_->priority()));
  return {};
}

Status CpuStream::FillStrided(Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                              std::span<const hal::StridedAxis> axes) {
  const StridedShape shape(dst, nullptr, element_bytes, axes);
  if (shape.IsRun()) return Fill(ticket, shape.dst(), element_bytes, pattern, shape.element_count());
  core_->Submit(ticket, std::make_shared<StridedSweep>(shape, pattern, core_->priority()));
  return {};
}

Status CpuStream::CopyPageable(std::byte*, const std::byte*, uint64_t) {
  MR_CHECK(!"a CPU device needs no staging: NeedsLockedMemory() is false");
  return {};
}

Status CpuStream::Record(Ticket ticket, hal::EventHandle& event_handle) {
  core_->Submit(ticket, static_cast<CpuEventHandle&>(event_handle).stamp());
  return {};
}

Status CpuStream::WaitEvent(Ticket, hal::EventHandle&) {
  return {StatusCode::kUnsupported, "waiting for an event of another process on a CPU device"};
}

Status CpuStream::Wait(Ticket ticket, hal::Stream& other, Ticket until) {
  const std::shared_ptr<StreamCore>& core = static_cast<CpuStream&>(other).core_;
  const bool is_own = core->pool() == core_->pool();
  if (is_own ? !core->HasAccepted(until) : !core->Promise(until, core_, ticket)) {
    return {StatusCode::kUpstream, "waiting for a stream of a destroyed device"};
  }
  core_->Submit(ticket, StreamCore::Wait{core, until});
  return {};
}

Status CpuStream::Nop(Ticket ticket) {
  core_->Submit(ticket, StreamCore::Nop{});
  return {};
}

Result<std::unique_ptr<hal::Memory>> CpuStream::Allocate(Ticket ticket, uint64_t bytes) {
  // The cores' caches still hold the block that the stream used last.
  if (std::unique_ptr<hal::Memory> freed = core_->TakeFreed(heap_->ReusableBytes(bytes))) {
    heap_->Renew(*freed, bytes);
    core_->Submit(ticket, StreamCore::Nop{});
    return freed;
  }
  Result<std::unique_ptr<hal::Memory>> memory = heap_->Allocate(bytes);
  if (memory.ok()) core_->Submit(ticket, StreamCore::Nop{});
  return memory;
}

Status CpuStream::Free(Ticket ticket, std::unique_ptr<hal::Memory> memory) {
  const uint64_t reusable = heap_->ReusableBytes(*memory);
  const bool is_light = memory->bytes() <= kLightFreeBytes || (reusable > 0 && heap_->WouldKeep(memory->bytes()));
  core_->Submit(ticket, StreamCore::Free{std::move(memory), reusable, is_light});
  return {};
}

}  // namespace millrace::cpu
