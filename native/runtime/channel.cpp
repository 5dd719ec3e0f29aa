#include "runtime/channel.h"

#include <utility>

#include "hal/thread.h"

namespace millrace {

Channel::Channel(hal::Backend& backend, const Opening& opening, uint32_t id)
    : shared_memory_(opening.memory),
      device_(backend, id),
      streams_(opening.timeline, *this, recorder_),
      loss_(streams_, tables_, peers_.routes, inbox_),
      submissions_(streams_, loss_, inbox_, opening.max_pending),
      locks_(device_),
      control_(device_, tables_, peers_, locks_, inbox_),
      faults_(device_, streams_, loss_),
      owners_(streams_, submissions_, tables_, peers_.users, loss_, inbox_),
      thread_(
          {*this, device_, streams_, inbox_, tables_, peers_, loss_, submissions_, faults_, owners_, blocking_calls_},
          locks_, opening.schedule, opening.source) {}

Result<std::shared_ptr<Channel>> Channel::Open(hal::Backend& backend, const Opening& opening, uint32_t id) {
  std::shared_ptr<Channel> channel(new Channel(backend, opening, id));
  MR_TRY(channel->device_.Open(opening.ordinal, opening.timeline));
  hal::Device& device = channel->device_.device();
  Status started = opening.memory_limit == 0 ? Status() : device.LimitMemory(opening.memory_limit);
  if (started.ok() && opening.is_guarded) started = device.GuardMemory();
  if (started.ok() && opening.threads != 0) started = device.LimitThreads(opening.threads);
  if (started.ok() && opening.seed) started = device.Reseed(*opening.seed);
  if (started.ok()) started = channel->faults_.Reserve();
  // The thread keeps its channel alive, even after the environment that opened it has ended. Two may wait for its end
  // at once (a close and the end of the environment), so its end is a flag and not a join.
  Thread thread;
  if (started.ok()) started = thread.Start("mr-channel", [channel] { channel->thread_.Run(); });
  if (!started.ok()) {
    channel->faults_.Clear();
    device.Close();
    return started;
  }
  thread.Detach();
  Status bound;
  channel->inbox_.RunOnThread([&] { bound = device.BindChannelThread(); });
  if (!bound.ok()) {
    channel->Close();
    return bound;
  }
  return channel;
}

// ── Owners ─────────────────────────────────────────────────────────────────────────────────────────────────────────

bool Channel::Arm(uint32_t stream, Ticket ticket) {
  StreamState* state = FindStream(stream);
  if (state == nullptr || !state->ArmOwner(ticket) || loss_.is_lost()) return false;
  AskIfPolled();
  return true;
}

FailureLog::Part Channel::Failures(uint32_t stream, uint32_t from, uint32_t count) {
  StreamState* state = FindStream(stream);
  if (state == nullptr) return {};
  if (FaultReports::IsAnyReported()) FaultReports::Collect();
  return state->failures.From(from, count);
}

void Channel::Reported(uint32_t stream, Ticket through) {
  if (StreamState* state = FindStream(stream)) FaultReports::Reported(*state, through);
}

void Channel::ReportedOf(uint32_t handle, uint64_t offset, uint64_t bytes) {
  if (!FaultReports::HasUnreported()) return;
  if (const auto host = tables_.host.Look(handle)) FaultReports::Reported({host->state, offset, bytes});
}

ChannelStats Channel::Stats() {
  ChannelStats stats;
  tables_.Describe(stats);
  stats.pinned_bytes = locks_.bytes();
  submissions_.Describe(stats);
  return stats;
}

void Channel::Release(uint32_t stream, Ticket ticket, bool has_failed) {
  StreamState* state = FindStream(stream);
  if (state == nullptr) return;
  state->ReleaseHold(ticket, has_failed);
  WakeStream(stream);
}

Ticket Channel::ReadyExternal(uint32_t stream) {
  const StreamState* state = FindStream(stream);
  return state == nullptr ? 0 : state->Called();
}

Result<uint64_t> Channel::EnterContext() {
  return device_.With([](hal::Device& device) { return device.EnterContext(); });
}

std::optional<uint64_t> Channel::StreamHandle(uint32_t stream) {
  StreamState* state = FindStream(stream);
  return state == nullptr ? std::nullopt : state->NativeHandle();
}

void Channel::DefineGraph(uint32_t handle, std::span<const std::byte> definition, uint32_t owner_id) {
  auto graph = std::make_shared<GraphEntry>();
  graph->bytes.assign(definition.begin(), definition.end());
  // Before the record that launches it is read.
  inbox_.Post([this, handle, owner_id, graph = std::move(graph)] { tables_.DefineGraph(handle, graph, owner_id); });
}

Recorder::Taken Channel::TakeTimes(uint32_t owner_id, std::span<protocol::RecordedTime> into) {
  if (device_.needs_polling() && recorder_.IsOn()) inbox_.Post([this] { TellTimes(); });
  return recorder_.Take(owner_id, into);
}

Status Channel::AlignClocks() {
  MR_TRY(device_.With([](hal::Device& device) { return device.AlignClocks(); }));
  if (device_.needs_polling()) inbox_.RunOnThread([this] { TellTimes(); });
  return {};
}

void Channel::TellTimes() {
  std::lock_guard lock(device_.streams_mutex());
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    if (hal::Stream* const backend = streams_.At(n).backend.get()) backend->TellTimes();
  }
}

std::vector<uint32_t> Channel::BusyStreams() {
  std::vector<uint32_t> busy;
  std::lock_guard lock(device_.streams_mutex());
  for (uint32_t n = 0; n < streams_.count(); ++n) {
    const StreamState& stream = streams_.At(n);
    if (stream.backend != nullptr && stream.backend->IsBusy(stream.Issued())) busy.push_back(n);
  }
  return busy;
}

// ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

void Channel::BeginClose() {
  submissions_.Close();
  inbox_.StopWhenDrained();
}

void Channel::Close() {
  BeginClose();
  thread_.AwaitExit();
}

void Channel::BeginAbandon() {
  submissions_.Close();
  loss_.Mark(Status(StatusCode::kState, "the device's thread was ended"));
  // No record is issued any more that names it, and a kernel of any device that runs beyond the deadline may have
  // copies behind it.
  tables_.host.ForEach([&](const HostEntry& entry) { entry.state->lease.Withdraw(); });
  inbox_.Abandon();
}

void Channel::Abandon(std::chrono::milliseconds deadline) {
  BeginAbandon();
  thread_.AwaitExit(deadline);
}

// ── Other threads ──────────────────────────────────────────────────────────────────────────────────────────────────

void Channel::AskIfPolled() {
  if (device_.needs_polling()) inbox_.Ask();
}

void Channel::WakeStream(uint32_t stream) noexcept {
  if (StreamState* const state = streams_.Find(stream)) inbox_.Wake(*state);
}

}  // namespace millrace
