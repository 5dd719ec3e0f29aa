#include "cuda/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "cuda/context_scope.h"
#include "cuda/own_streams.h"
#include "hal/thread.h"

namespace millrace::cuda {

namespace {

using Fault = CommunicatorFault;

/// How often a thread looks at the ranks. A failed rank is known on the others within this and what the library takes.
constexpr auto kWatchEvery = std::chrono::milliseconds(20);
/// What is in flight may take so long when a communicator is closed.
constexpr auto kMostClosing = std::chrono::seconds(10);
/// A call of the library that has not returned then is one that an abort has to end.
constexpr auto kMostCall = std::chrono::seconds(2);
/// FaultSlot::parameter of a collective: COLLECTIVE_PARAMETER in src/core/channel/build-spec.ts.
constexpr uint32_t kCollectiveParameter = 0xffff'fffc;

struct Known {
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<Communicator>> communicators;
  uint32_t last = 0;
};

/// Never destroyed: threads may outlive static objects.
Known& AllKnown() {
  static auto& known = *new Known;
  return known;
}

}  // namespace

// ── Opening and closing ────────────────────────────────────────────────────────────────────────────────────────────

Result<uint32_t> Communicator::Open(std::span<const Member> members, uint32_t size, const NcclUniqueId* id,
                                    std::shared_ptr<CommunicatorOwner> owner, std::string& detail) {
  const NcclLibrary* const library = OpenNccl();
  if (library == nullptr) return Status(StatusCode::kUnavailable, "finding NCCL");
  const std::shared_ptr<Communicator> made(new Communicator(*library, std::move(owner)));
  MR_TRY(made->Join(members, size, id, detail));
  Thread watching;
  Status ready = made->MakeStreams();
  made->owner_->open.fetch_add(1);
  if (ready.ok()) ready = watching.Start("millrace-nccl", [made] { made->Watch(); });
  if (!ready.ok()) {
    made->owner_->open.fetch_sub(1);
    made->Leave(true);
    return ready;
  }
  watching.Detach();
  Known& known = AllKnown();
  const std::lock_guard lock(known.mutex);
  const uint32_t number = ++known.last;
  known.communicators[number] = made;
  return number;
}

std::optional<NcclUniqueId> Communicator::MakeId() {
  const NcclLibrary* const library = OpenNccl();
  NcclUniqueId id;
  if (library == nullptr || library->functions.ncclGetUniqueId(&id) != ncclSuccess) return std::nullopt;
  return id;
}

std::shared_ptr<Communicator> Communicator::Find(uint32_t number) {
  Known& known = AllKnown();
  const std::lock_guard lock(known.mutex);
  const auto found = known.communicators.find(number);
  return found == known.communicators.end() ? nullptr : found->second;
}

Status Communicator::Join(std::span<const Member> members, uint32_t size, const NcclUniqueId* id, std::string& detail) {
  size_ = size;
  for (const auto& [ordinal, rank] : members) {
    Result<std::shared_ptr<Context>> context = Context::Retain(ordinal);
    MR_TRY(context.status());
    ranks_.push_back({.context = std::move(context).value(), .rank = rank});
  }
  // Where none is current, the library would make the context of device 0.
  const ContextScope scope(ranks_.front().context->handle());
  MR_TRY(ranks_.front().context->Check(scope.code(), "making the context current"));
  const NcclTable& nccl = library_.functions;
  NcclUniqueId own;
  NcclCode code = id == nullptr ? nccl.ncclGetUniqueId(&own) : ncclSuccess;
  Status ready;
  if (code == ncclSuccess) {
    const NcclSettings settings;
    // In one group: each rank waits for the others.
    code = nccl.ncclGroupStart();
    for (Rank& rank : ranks_) {
      const ContextScope current(rank.context->handle());
      if (ready.ok()) ready = rank.context->Check(current.code(), "making the context current");
      if (ready.ok() && code == ncclSuccess)
        code = nccl.ncclCommInitRank(&rank.comm, static_cast<int>(size), id == nullptr ? own : *id,
                                     static_cast<int>(rank.rank));
    }
    const NcclCode ended = nccl.ncclGroupEnd();
    if (code == ncclSuccess) code = ended;
    code = Settle(code);
  }
  if (code != ncclSuccess && ready.ok()) {
    // One text for the whole process, so it may be about something else.
    constexpr size_t kMostSaid = 1024;
    const char* const said = nccl.ncclGetLastError == nullptr ? nullptr : nccl.ncclGetLastError(nullptr);
    if (said != nullptr && *said != 0) detail = "NCCL said last: " + std::string(said, strnlen(said, kMostSaid));
    ready = NcclFailure(code);
  }
  if (!ready.ok()) Leave(true);
  return ready;
}

/// With NCCL_COMM_BLOCKING=0 in the environment, calls return before they have ended.
NcclCode Communicator::Settle(NcclCode code) {
  if (code != ncclInProgress) return code;
  for (const Rank& rank : ranks_) {
    for (code = ncclInProgress; code == ncclInProgress;) {
      const NcclCode asked = library_.functions.ncclCommGetAsyncError(rank.comm, &code);
      if (asked != ncclSuccess) return asked;
      if (code == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (code != ncclSuccess) return code;
  }
  return ncclSuccess;
}

Status Communicator::MakeStreams() {
  for (Rank& rank : ranks_) {
    Context& context = *rank.context;
    const ContextScope scope(context.handle());
    MR_TRY(context.Check(scope.code(), "making the context current"));
    Result<CUstream> stream = OwnStreams().Take(context, 0);
    MR_TRY(stream.status());
    rank.stream = stream.value();
    for (CUevent* const event : {&rank.before, &rank.after})
      MR_TRY(context.Check(Cuda().cuEventCreate(event, CU_EVENT_DISABLE_TIMING), "creating an event"));
  }
  return {};
}

Communicator::~Communicator() {
  for (const Rank& rank : ranks_) {
    if (rank.context->is_lost()) continue;
    const ContextScope scope(rank.context->handle());
    if (scope.code() != CUDA_SUCCESS) continue;
    for (const CUevent event : {rank.before, rank.after})
      if (event != nullptr) std::ignore = rank.context->Check(Cuda().cuEventDestroy(event), "destroying an event");
    if (rank.stream != nullptr) OwnStreams().GiveBack(*rank.context, rank.stream);
  }
  for (const auto& [context, event] : free_) {
    if (context->is_lost()) continue;
    const ContextScope scope(context->handle());
    if (scope.code() == CUDA_SUCCESS) std::ignore = context->Check(Cuda().cuEventDestroy(event), "destroying an event");
  }
}

void Communicator::Abort(Fault why) {
  const std::lock_guard lock(watch_mutex_);
  if (aborting_ == Fault::kNone) aborting_ = why;
  watch_.notify_all();
}

void Communicator::Forget() {
  Known& known = AllKnown();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.communicators, [this](const auto& each) { return each.second.get() == this; });
}

void Communicator::Close() {
  Forget();
  const auto latest = std::chrono::steady_clock::now() + kMostClosing;
  while (fault() == Fault::kNone) {
    {
      const std::lock_guard lock(flights_mutex_);
      Retire(false);
      // Begin looks for it with the mutex held.
      auto none = Fault::kNone;
      if (flights_.empty() && fault_.compare_exchange_strong(none, Fault::kClosed, std::memory_order_acq_rel)) break;
    }
    if (std::chrono::steady_clock::now() > latest) {
      Fail(Fault::kAborted);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // The watching thread may be about to abort ranks that wait for a lost one.
  Leave(fault() != Fault::kClosed);
  const std::lock_guard lock(watch_mutex_);
  is_over_ = true;
  watch_.notify_all();
}

void Communicator::Leave(bool aborts) {
  {
    const std::lock_guard lock(graphs_mutex_);
    for (const std::weak_ptr<ExecutableGraph>& each : std::exchange(graphs_, {}))
      if (const std::shared_ptr<ExecutableGraph> graph = each.lock()) graph->End();
  }
  std::unique_lock lock(calls_, std::chrono::system_clock::now() + kMostCall);
  if (has_left_.exchange(true)) return;
  const NcclTable& nccl = library_.functions;
  for (Rank& rank : ranks_) {
    if (rank.comm == nullptr) continue;
    const ContextScope scope(rank.context->handle());
    std::ignore = aborts || rank.context->is_lost() ? nccl.ncclCommAbort(rank.comm) : nccl.ncclCommDestroy(rank.comm);
  }
}

// ── Watching ───────────────────────────────────────────────────────────────────────────────────────────────────────

void Communicator::Watch() {
  std::unique_lock lock(watch_mutex_);
  while (!is_over_) {
    watch_.wait_for(lock, kWatchEvery);
    const bool is_owned = !owner_->has_left;
    if (is_over_ || (is_owned && fault() != Fault::kNone)) continue;
    const Fault asked = is_owned ? aborting_ : Fault::kAborted;
    lock.unlock();
    Fault why = Look();
    if (why == Fault::kNone && asked != Fault::kNone) why = code_.load() == ncclSuccess ? asked : Fault::kFailed;
    if (why != Fault::kNone) Fail(why);
    if (!is_owned) Forget();
    lock.lock();
    if (!is_owned) break;
  }
  owner_->open.fetch_sub(1);
}

Fault Communicator::Look() {
  const std::unique_lock lock(calls_, std::try_to_lock);
  const bool may_ask = lock.owns_lock() && !has_left_;
  for (const Rank& rank : ranks_) {
    if (rank.context->is_lost()) return Fault::kLost;
    NcclCode code = ncclSuccess;
    const NcclCode asked = may_ask ? library_.functions.ncclCommGetAsyncError(rank.comm, &code) : ncclSuccess;
    if (asked != ncclSuccess) code = asked;
    if (code == ncclSuccess || code == ncclInProgress) continue;
    NoteCode(code);
    return Fault::kFailed;
  }
  return Fault::kNone;
}

void Communicator::Fail(Fault why) {
  auto none = Fault::kNone;
  if (!fault_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) return;
  {
    const std::lock_guard lock(flights_mutex_);
    Retire(true);
    // Before the abort: it ends the launches, and their tickets must not complete without the report.
    // The slots of an owner that has left may be gone, and what ended on a lost device is not known.
    for (const Flight& flight : flights_)
      if (!owner_->has_left && !flight.home->is_lost()) Report(flight, why);
  }
  Leave(true);
}

void Communicator::Report(const Flight& flight, Fault why) const {
  flight.slot->parameter = kCollectiveParameter;
  flight.slot->dimension = static_cast<uint32_t>(why);
  flight.slot->index = why == Fault::kFailed ? code_.load() : 0;
  std::atomic_ref(flight.slot->state).store(hal::kFaultWritten, std::memory_order_release);
  std::atomic_ref(*flight.word).store(1, std::memory_order_release);
}

bool Communicator::HasEnded(const Flight& flight) {
  if (flight.event == nullptr || flight.home->is_lost()) return false;
  const ContextScope scope(flight.home->handle());
  return scope.code() == CUDA_SUCCESS && Cuda().cuEventQuery(flight.event) == CUDA_SUCCESS;
}

void Communicator::Retire(bool all) {
  std::vector<std::shared_ptr<Context>> busy;
  std::erase_if(flights_, [&](const Flight& flight) {
    if (!all && std::ranges::find(busy, flight.home) != busy.end()) return false;
    if (!HasEnded(flight)) {
      busy.push_back(flight.home);
      return false;
    }
    free_.emplace_back(flight.home, flight.event);
    return true;
  });
}

}  // namespace millrace::cuda
