// One collective: what NCCL is called for, and how the streams of its ranks are joined.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "cuda/communicator.h"
#include "cuda/context_scope.h"
#include "cuda/copies_through_host.h"

namespace millrace::cuda {

namespace {

using hal::CollectiveKind;
using hal::CollectivePlan;
using Fault = CommunicatorFault;

/// By ncclDataType_t.
constexpr std::array<size_t, 10> kBytesOf = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

constexpr Status kNoRank(StatusCode::kLaunchFailed,
                         "finding the communicator, which is closed or has no rank on the device");

class Collective final : public LibraryKernel {
 public:
  Collective(std::shared_ptr<Context> context, std::shared_ptr<Communicator> communicator, CollectivePlan plan)
      : LibraryKernel(std::move(context)), communicator_(std::move(communicator)), plan_(std::move(plan)) {}

  [[nodiscard]] bool NeedsGrants() const override { return false; }
  [[nodiscard]] uint64_t WorkspaceBytes(std::span<void* const>) const override { return 0; }
  [[nodiscard]] uint64_t MostWorkspaceBytes() const override { return 0; }
  [[nodiscard]] Status Call(CUstream stream, std::span<void* const> params, std::byte*) override {
    return communicator_->Call(plan_, context(), 0, stream, params);
  }
  [[nodiscard]] Status CallAs(uint64_t place, CUstream stream, std::span<void* const> params, std::byte*) override {
    return communicator_->Call(plan_, context(), place, stream, params);
  }
  [[nodiscard]] std::shared_ptr<Communicator> communicator() const override { return communicator_; }
  [[nodiscard]] Result<std::optional<CapturedGraph>> Capture(StreamCapture& capture, std::span<void* const> params,
                                                             std::byte*,
                                                             const std::shared_ptr<ExecutableGraph>& whole) override {
    return communicator_->Capture(plan_, context(), capture, params, whole);
  }

 private:
  const std::shared_ptr<Communicator> communicator_;
  const CollectivePlan plan_;
};

/// Holds the submissions of the other devices of a launch.
class SubmittingElsewhere {
 public:
  SubmittingElsewhere() = default;
  ~SubmittingElsewhere() {
    for (Context* const context : held_) context->submissions().unlock_shared();
  }
  SubmittingElsewhere(const SubmittingElsewhere&) = delete;
  SubmittingElsewhere& operator=(const SubmittingElsewhere&) = delete;
  void Hold(Context& context) {
    context.submissions().lock_shared();
    held_.push_back(&context);
  }

 private:
  std::vector<Context*> held_;
};

template <typename T>
T ValueAt(std::span<void* const> params, size_t at) {
  T value{};
  std::memcpy(&value, params[at], sizeof(value));
  return value;
}

}  // namespace

struct Communicator::Arrays {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  size_t count = 0;
  [[nodiscard]] bool AreNone() const { return from == nullptr && to == nullptr; }
};

bool Communicator::Has(const Context& home) const {
  return std::ranges::any_of(ranks_, [&](const Rank& rank) { return rank.context.get() == &home; });
}

const Communicator::Rank* Communicator::RankOf(const Context& home) const {
  const auto at = std::ranges::find_if(ranks_, [&](const Rank& rank) { return rank.context.get() == &home; });
  return at == ranks_.end() ? nullptr : &*at;
}

std::vector<std::shared_ptr<Context>> Communicator::contexts() const {
  std::vector<std::shared_ptr<Context>> all;
  for (const Rank& rank : ranks_) all.push_back(rank.context);
  return all;
}

std::vector<Communicator::Flight>::iterator Communicator::FlightOf(Launch launch) {
  return std::ranges::find(flights_, launch.number, &Flight::number);
}

std::optional<Communicator::Launch> Communicator::Begin(const std::shared_ptr<Context>& home, protocol::FaultSlot* slot,
                                                        uint32_t* word) {
  const std::lock_guard lock(flights_mutex_);
  const Flight next{.number = ++last_flight_, .home = home, .slot = slot, .word = word};
  if (const Fault why = fault(); why != Fault::kNone) {
    Report(next, why);
    return std::nullopt;
  }
  Retire(false);
  flights_.push_back(next);
  return Launch{next.number};
}

Status Communicator::End(Launch launch, CUstream stream, Status submitted) {
  const std::lock_guard lock(flights_mutex_);
  const auto flight = FlightOf(launch);
  MR_CHECK(flight != flights_.end());
  CUevent event = nullptr;
  Status status = submitted;
  if (status.ok()) {
    const auto found = std::ranges::find_if(free_, [&](const auto& each) { return each.first == flight->home; });
    if (found != free_.end()) {
      event = found->second;
      *found = free_.back();
      free_.pop_back();
    } else {
      status = flight->home->Check(Cuda().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "creating an event");
    }
  }
  if (status.ok()) status = flight->home->Check(Cuda().cuEventRecord(event, stream), "recording an event");
  if (status.ok()) {
    flight->event = event;
    return status;
  }
  if (event != nullptr) free_.emplace_back(flight->home, event);
  flights_.erase(flight);
  // Some ranks may wait for others now.
  Abort(Fault::kAborted);
  return status;
}

void Communicator::Cancel(Launch launch) {
  const std::lock_guard lock(flights_mutex_);
  flights_.erase(FlightOf(launch));
  // Ranks of other processes may have launched, and would wait for those here.
  if (size_ > ranks_.size()) Abort(Fault::kAborted);
}

void Communicator::Refuse(Launch launch) {
  FailLaunch(launch, code_.load() == ncclSuccess ? Fault::kAborted : Fault::kFailed);
}

void Communicator::FailLaunch(Launch launch, Fault why) {
  const std::lock_guard lock(flights_mutex_);
  const auto flight = FlightOf(launch);
  Report(*flight, why);
  flights_.erase(flight);
  Abort(Fault::kAborted);
}

std::unique_lock<std::timed_mutex> Communicator::LockCalls() {
  std::unique_lock calling(calls_, std::defer_lock);
  const auto soon = [] { return std::chrono::system_clock::now() + std::chrono::milliseconds(1); };
  while (fault() == Fault::kNone && !calling.try_lock_until(soon())) {
  }
  return calling;
}

Status Communicator::Call(const CollectivePlan& plan, const Context& home, uint64_t place, CUstream stream,
                          std::span<void* const> params) {
  const Rank* const at = RankOf(home);
  if (at == nullptr || params.size() < 3) return kNoRank;
  const std::unique_lock calling = LockCalls();
  const std::optional<Launch> launch = Begin(at->context, ValueAt<protocol::FaultSlot*>(params, params.size() - 2),
                                             ValueAt<uint32_t*>(params, params.size() - 1));
  if (!launch) return {};
  Result<Fault> submitted = Submit(plan, *at, place, stream, params.first(params.size() - 2));
  if (!submitted.ok() || submitted.value() == Fault::kNone) return End(*launch, stream, submitted.status());
  FailLaunch(*launch, submitted.value());
  return {};
}

Result<std::optional<CapturedGraph>> Communicator::Capture(const CollectivePlan& plan, const Context& home,
                                                           StreamCapture& capture, std::span<void* const> params,
                                                           const std::shared_ptr<ExecutableGraph>& whole) {
  const Rank* const at = RankOf(home);
  if (at == nullptr || params.size() < 3) return kNoRank;
  // To the end of the capture: the streams of the other ranks are part of it.
  const std::unique_lock calling = LockCalls();
  {
    const std::lock_guard lock(graphs_mutex_);
    std::erase_if(graphs_, [](const auto& each) { return each.expired(); });
    if (graphs_.empty() || graphs_.back().lock() != whole) graphs_.push_back(whole);
  }
  if (fault() != Fault::kNone) return std::optional<CapturedGraph>();
  // A wait for the whole device would end the capture.
  SubmittingElsewhere submitting;
  submitting.Hold(*at->context);
  Fault why = Fault::kNone;
  Result<CapturedGraph> captured = capture.Capture([&](CUstream stream) -> Status {
    Result<Fault> submitted = Submit(plan, *at, 0, stream, params.first(params.size() - 2));
    MR_TRY(submitted.status());
    why = submitted.value();
    return {};
  });
  if (why != Fault::kNone) {
    Abort(why);
    return std::optional<CapturedGraph>();
  }
  MR_TRY(captured.status());
  return std::optional(std::move(captured).value());
}

Result<Fault> Communicator::Submit(const CollectivePlan& plan, const Rank& home, uint64_t place, CUstream stream,
                                   std::span<void* const> params) {
  MR_CHECK(plan.ranks == ranks_.size());
  std::vector<Rank*> others;
  std::vector<Rank*> waiting;  // For what the stream did since the last launch.
  SubmittingElsewhere submitting;
  for (size_t n = 0; n < ranks_.size(); ++n) {
    if (&ranks_[n] == &home) continue;
    submitting.Hold(*ranks_[n].context);
    const auto takes_part = [n](const CollectivePlan::Operation& operation) {
      const auto& [from, to] = operation.arrays[n];
      return from != CollectivePlan::kNone || to != CollectivePlan::kNone;
    };
    if (!std::ranges::any_of(plan.operations, takes_part)) continue;
    others.push_back(&ranks_[n]);
    const bool is_behind = place != 0 && ranks_[n].place + 1 == place;
    if (!is_behind) waiting.push_back(&ranks_[n]);
    ranks_[n].place = 0;
  }
  const auto check = [&](CUresult code, const Rank& rank) {
    return CheckAmong(*home.context, {rank.context.get()}, code, "joining the streams of a collective");
  };
  const auto on = [&](const Rank& rank, auto&& call) {
    const ContextScope scope(rank.context->handle());
    return check(scope.code() == CUDA_SUCCESS ? call() : scope.code(), rank);
  };
  const auto lost_or = [](const Status& status) -> Result<Fault> {
    if (status.code() == StatusCode::kUpstream) return Fault::kLost;
    return status;
  };
  if (!waiting.empty()) {
    Status ready = check(Cuda().cuEventRecord(home.before, stream), home);
    for (const Rank* const rank : waiting)
      if (ready.ok()) ready = on(*rank, [&] { return Cuda().cuStreamWaitEvent(rank->stream, home.before, 0); });
    if (!ready.ok()) return lost_or(ready);
  }
  const NcclTable& nccl = library_.functions;
  NcclCode code = nccl.ncclGroupStart();
  const auto address = [&](uint32_t param) {
    return param < params.size() ? ValueAt<std::byte*>(params, param) : nullptr;
  };
  for (const CollectivePlan::Operation& operation : plan.operations) {
    const uint64_t count = operation.count < params.size() ? ValueAt<uint64_t>(params, operation.count) : 0;
    for (size_t n = 0; n < ranks_.size() && code == ncclSuccess; ++n) {
      const auto& [from, to] = operation.arrays[n];
      const Arrays arrays{address(from), address(to), static_cast<size_t>(count)};
      if (arrays.AreNone()) continue;
      code = Enqueue(operation, ranks_[n], arrays, &ranks_[n] == &home ? stream : ranks_[n].stream);
    }
  }
  const NcclCode ended = nccl.ncclGroupEnd();
  if (code == ncclSuccess) code = ended;
  // A group that fails leaves the context of another device current.
  Status joined = home.context->Check(Cuda().cuCtxSetCurrent(home.context->handle()), "making the context current");
  code = Settle(code);
  // Also after a failure: the library may have begun on some devices, whose arrays are in use until the abort.
  for (const Rank* const rank : others) {
    Status own = on(*rank, [&] { return Cuda().cuEventRecord(rank->after, rank->stream); });
    if (own.ok()) own = check(Cuda().cuStreamWaitEvent(stream, rank->after, 0), *rank);
    if (joined.ok()) joined = own;
  }
  if (code == ncclSuccess) {
    if (!joined.ok()) return lost_or(joined);
    for (Rank* const rank : others) rank->place = place;
    return Fault::kNone;
  }
  NoteCode(code);
  // The library hides a lost device behind a code of its own.
  MR_TRY(home.context->Ask());
  const bool is_lost = std::ranges::any_of(others, [](const Rank* rank) { return !rank->context->Ask().ok(); });
  return is_lost ? Fault::kLost : Fault::kFailed;
}

NcclCode Communicator::Enqueue(const CollectivePlan::Operation& operation, const Rank& rank, const Arrays& arrays,
                               CUstream stream) {
  const NcclTable& nccl = library_.functions;
  const auto type = static_cast<int>(operation.type);
  const auto op = static_cast<int>(operation.op);
  const auto root = static_cast<int>(operation.root);
  const auto peer = static_cast<int>(operation.peer);
  const auto& [from, to, count] = arrays;
  switch (operation.kind) {
    case CollectiveKind::kAllReduce:
      return nccl.ncclAllReduce(from, to, count, type, op, rank.comm, stream);
    case CollectiveKind::kReduce:
      return nccl.ncclReduce(from, to, count, type, op, root, rank.comm, stream);
    case CollectiveKind::kBroadcast:
      return nccl.ncclBroadcast(from, to, count, type, root, rank.comm, stream);
    case CollectiveKind::kAllGather:
      return nccl.ncclAllGather(from, to, count, type, rank.comm, stream);
    case CollectiveKind::kReduceScatter:
      return nccl.ncclReduceScatter(from, to, count, type, op, rank.comm, stream);
    case CollectiveKind::kAllToAll: {
      const size_t bytes = count * kBytesOf[operation.type];
      NcclCode code = ncclSuccess;
      for (uint32_t other = 0; other < size_ && code == ncclSuccess; ++other) {
        code = nccl.ncclSend(from + other * bytes, count, type, static_cast<int>(other), rank.comm, stream);
        if (code == ncclSuccess)
          code = nccl.ncclRecv(to + other * bytes, count, type, static_cast<int>(other), rank.comm, stream);
      }
      return code;
    }
    case CollectiveKind::kSend:
      break;
  }
  return from != nullptr ? nccl.ncclSend(from, count, type, peer, rank.comm, stream)
                         : nccl.ncclRecv(to, count, type, root, rank.comm, stream);
}

Result<hal::PlannedCall> PlanCollective(std::shared_ptr<Context> context, const CollectivePlan& plan) {
  std::shared_ptr<Communicator> communicator = Communicator::Find(plan.communicator);
  if (communicator == nullptr || !communicator->Has(*context) || plan.ranks != communicator->size_here())
    return kNoRank;
  const hal::LibraryInfo& info = communicator->info();
  return hal::PlannedCall{.kernel = std::make_shared<Collective>(std::move(context), std::move(communicator), plan),
                          .library = info,
                          .is_checked = true};
}

}  // namespace millrace::cuda
