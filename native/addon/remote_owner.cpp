// More than 400 lines: one function per call of an owner.
#include "addon/remote_owner.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "addon/args.h"
#include "addon/channel_values.h"
#include "addon/environment.h"
#include "addon/values.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

using remote::Owner;

/// Null unless this environment has the device.
template <size_t N>
Environment::Remote* RemoteOf(Args<N>& args, size_t n = 0) {
  const uint32_t id = args.U32(n);
  return args.ok() ? args.self().FindRemote(id) : nullptr;
}

napi_value NoRemote(napi_env env, const char* function) {
  return ThrowStatus(env, function, Status(StatusCode::kState, "the device is not open in a process for this thread"));
}

// ── The process and its memory ─────────────────────────────────────────────────────────────────────────────────────

/// `{ channel, file }`.
napi_value RemoteOpen(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const uint64_t arena_bytes = args.U53(2);
  const uint32_t max_pending = args.UpTo(3, protocol::kMaxPending);
  if (!args.ok()) return args.Throw("remoteOpen");
  Environment& self = args.self();
  Environment::Remote made;
  made.timeline = self.Hold(args[0]);
  made.arena = self.Hold(args[1]);
  const std::span<std::byte> timeline = made.timeline.bytes;
  const std::span<std::byte> arena = made.arena.bytes;
  const auto give_up = [&] {
    self.Release(made.timeline);
    self.Release(made.arena);
  };
  if (!IsWholeGrowable(env, args[0], timeline.size()) || !IsWholeGrowable(env, args[1], arena_bytes) ||
      timeline.size() != protocol::kMaxStreams * sizeof(protocol::TimelineSlot)) {
    give_up();
    return args.Throw("remoteOpen");
  }
  auto memory = RemoteMemory::Make(timeline.size(), arena_bytes);
  if (!memory.ok()) {
    give_up();
    return ThrowStatus(env, "remoteOpen", memory.status());
  }
  made.memory = std::move(memory).value();
  made.pages = std::make_shared<DevicePages>();
  made.pages->memory = made.memory;
  made.pages->timeline = made.memory->MapTimeline(timeline);
  made.pages->arena = made.memory->MapArena(arena, arena_bytes);
  if (!made.pages->timeline.is_mapped() || !made.pages->arena.is_mapped()) {
    give_up();
    return ThrowStatus(env, "remoteOpen", Status(StatusCode::kOutOfMemory, "mapping memory that processes share"));
  }
  auto* const slots = reinterpret_cast<protocol::TimelineSlot*>(made.pages->timeline.Native(timeline).data());
  made.owner =
      std::make_shared<Owner>(made.memory->block(), std::span(slots, protocol::kMaxStreams), made.pages, max_pending);
  const uint32_t id = Registry::Instance().TakeId();
  const int file = made.memory->file();
  if (id >= self.remotes.size()) self.remotes.resize(id + 1);
  self.remotes[id] = std::make_unique<Environment::Remote>(std::move(made));
  return ObjectValue(env).Set("channel", id).Set("file", static_cast<double>(file)).value();
}

napi_value RemoteWatch(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t process = args.UpTo(1, INT32_MAX);
  const std::chrono::milliseconds timeout(args.UpTo(2, INT32_MAX));
  if (!args.ok()) return args.Throw("remoteWatch");
  if (remote == nullptr || args.self().port == nullptr) return NoRemote(env, "remoteWatch");
  remote->owner->Name(static_cast<pid_t>(process));
  const Status started = Owner::Watch(remote->owner, args.self().port, timeout);
  return started.ok() ? nullptr : ThrowStatus(env, "remoteWatch", started);
}

napi_value RemoteEnd(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteEnd");
  if (remote == nullptr) return nullptr;
  remote->owner->Stop();
  args.self().Release(remote->timeline);
  args.self().Release(remote->arena);
  args.self().remotes[args.U32(0)].reset();
  return nullptr;
}

/// This process ends with the thread that started it. False if that has ended already.
napi_value EndWithParent(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t parent = args.U32(0);
  if (!args.ok()) return args.Throw("endWithParent");
  const bool is_set = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  return BoolValue(env, is_set && getppid() == static_cast<pid_t>(parent));
}

/// A range of shared memory for these bytes: its offset, or undefined if the system refuses. 0: none is needed.
napi_value RemoteTake(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint64_t bytes = args.U53(1);
  if (!args.ok()) return args.Throw("remoteTake");
  if (remote == nullptr) return NoRemote(env, "remoteTake");
  const uint64_t offset = remote->memory->Take(bytes);
  return offset == 0 ? Undefined(env) : NumberValue(env, static_cast<double>(offset));
}

napi_value RemoteRelease(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint64_t offset = args.U53(1);
  const uint64_t bytes = args.U53(2);
  if (!args.ok()) return args.Throw("remoteRelease");
  if (remote != nullptr) remote->memory->Release(offset, bytes);
  return nullptr;
}

napi_value RemoteWrite(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint64_t offset = args.U53(1);
  const std::span<const std::byte> bytes = args.Bytes(2);
  if (!args.ok()) return args.Throw("remoteWrite");
  return BoolValue(env, remote != nullptr && remote->memory->Write(offset, bytes));
}

napi_value RemoteRead(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint64_t offset = args.U53(1);
  const std::span<const std::byte> bytes = args.Bytes(2);
  if (!args.ok()) return args.Throw("remoteRead");
  return BoolValue(
      env, remote != nullptr && remote->memory->Read(offset, {const_cast<std::byte*>(bytes.data()), bytes.size()}));
}

/// Maps a range also as a whole growable buffer; in the owner with what the buffer holds. In the device's process the
/// first argument is a channel that it controls.
napi_value RemoteMap(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const uint32_t id = args.U32(0);
  const uint64_t offset = args.U53(1);
  const std::span<const std::byte> bytes = args.Bytes(2);
  args.Require(args.ok() && IsWholeGrowable(env, args[2], bytes.size()));
  if (!args.ok()) return args.Throw("remoteMap");
  const std::span<std::byte> target(const_cast<std::byte*>(bytes.data()), bytes.size());
  if (Environment::Remote* const remote = args.self().FindRemote(id)) {
    return BoolValue(env, remote->memory->Write(offset, bytes) && remote->memory->MapAt(target, offset));
  }
  Environment::Controlled* const controlled = args.self().FindControlled(id);
  const bool is_of_owner = controlled != nullptr && controlled->pages->memory != nullptr;
  return BoolValue(env, is_of_owner && controlled->pages->memory->MapAt(target, offset));
}

// ── What src/native/binding.ts describes for devices of this process ───────────────────────────────────────────────

napi_value RemoteSubmit(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  if (napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data) != napi_ok || data == nullptr) return nullptr;
  auto& self = *static_cast<Environment*>(data);
  if (self.record.bytes.empty()) return nullptr;  // The port is closed.
  auto& call = *reinterpret_cast<protocol::SubmitCall*>(self.record.bytes.data() + protocol::kMaxRecordBytes);
  Environment::Remote* const remote = self.FindRemote(call.channel);
  Submission submission{0, StatusCode::kState};
  if (remote != nullptr && call.bytes <= protocol::kMaxRecordBytes)
    submission = remote->owner->Submit(self.record.bytes.first(call.bytes));
  call.ticket = submission.ticket;
  call.status = static_cast<uint32_t>(submission.refused);
  return nullptr;
}

napi_value RemoteReserveHandles(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t kind = args.UpTo(1, static_cast<uint32_t>(protocol::HandleKind::kGraph));
  const uint32_t count = args.UpTo(2, Channel::kMaxHandles);
  if (!args.ok()) return args.Throw("remoteReserveHandles");
  if (remote == nullptr) return NoRemote(env, "remoteReserveHandles");
  return NumberValue(env, remote->owner->ReserveHandles(static_cast<protocol::HandleKind>(kind), count));
}

napi_value RemoteReserveFailure(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteReserveFailure");
  return NumberValue(env, remote == nullptr ? 0 : static_cast<double>(remote->owner->ReserveFailure()));
}

napi_value RemoteDefineGraph(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t handle = args.Handle(1);
  const std::span<const std::byte> definition = args.Bytes(2);
  if (!args.ok()) return args.Throw("remoteDefineGraph");
  if (remote == nullptr) return NoRemote(env, "remoteDefineGraph");
  remote->owner->DefineGraph(handle, definition);
  return nullptr;
}

napi_value RemoteReserveStream(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteReserveStream");
  if (remote == nullptr) return NoRemote(env, "remoteReserveStream");
  return NumberValue(env, static_cast<double>(remote->owner->ReserveStream()));
}

napi_value RemoteLastTicket(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t stream = args.U32(1);
  if (!args.ok()) return args.Throw("remoteLastTicket");
  return NumberValue(env, remote == nullptr ? 0 : static_cast<double>(remote->owner->LastTicket(stream)));
}

napi_value RemotePendingPoints(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remotePendingPoints");
  return PointsValue(env, remote == nullptr ? std::vector<SubmissionQueue::Point>() : remote->owner->PendingPoints());
}

napi_value RemoteArm(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t stream = args.U32(1);
  const uint64_t ticket = args.U53(2);
  if (!args.ok()) return args.Throw("remoteArm");
  return BoolValue(env, remote == nullptr || !remote->owner->Arm(stream, ticket));
}

napi_value RemoteFailures(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t stream = args.U32(1);
  const uint32_t from = args.U32(2);
  const uint32_t count = args.U32(3);
  if (!args.ok()) return args.Throw("remoteFailures");
  return FailuresValue(env, remote == nullptr ? FailureLog::Part{} : remote->owner->Failures(stream, from, count));
}

napi_value CallWithPoint(napi_env env, napi_callback_info info, const char* name,
                         void (Owner::*call)(uint32_t, Ticket)) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t stream = args.U32(1);
  const uint64_t ticket = args.U53(2);
  if (!args.ok()) return args.Throw(name);
  if (remote != nullptr) (*remote->owner.*call)(stream, ticket);
  return nullptr;
}

napi_value RemoteReported(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "remoteReported", &Owner::Reported);
}

napi_value RemoteReleaseHold(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "remoteReleaseHold", &Owner::ReleaseHold);
}

napi_value RemoteFailExternal(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "remoteFailExternal", &Owner::FailExternal);
}

napi_value RemoteReportedOf(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t handle = args.U32(1);
  const uint64_t offset = args.U53(2);
  const uint64_t bytes = args.U53(3);
  if (!args.ok()) return args.Throw("remoteReportedOf");
  if (remote != nullptr) remote->owner->ReportedOf(handle, offset, bytes);
  return nullptr;
}

napi_value RemoteLoss(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteLoss");
  if (remote == nullptr) return LossValue(env, StatusCode::kState, 0);
  return LossValue(env, remote->owner->LostStatus(), remote->owner->LostDriverCode());
}

/// `{ code, signal }`.
napi_value RemoteEnded(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteEnded");
  const auto end = remote == nullptr ? std::nullopt : remote->owner->Ended();
  if (!end) return Undefined(env);
  return ObjectValue(env).Set("code", end->code).Set("signal", end->signal).value();
}

napi_value RemoteHung(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteHung");
  const std::optional<uint32_t> hung = remote == nullptr ? std::nullopt : remote->owner->Hung();
  return hung ? NumberValue(env, *hung) : Undefined(env);
}

napi_value RemoteStats(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteStats");
  if (remote == nullptr) return NoRemote(env, "remoteStats");
  return StatsValue(env, remote->owner->Stats().value_or(ChannelStats{}));
}

napi_value RemoteBusyStreams(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteBusyStreams");
  return StreamsValue(env, remote == nullptr ? std::vector<uint32_t>() : remote->owner->BusyStreams());
}

napi_value RemoteHold(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const bool on = args.Bool(1);
  if (!args.ok()) return args.Throw("remoteHold");
  if (remote != nullptr) remote->owner->Hold(on);
  return nullptr;
}

napi_value RemoteStartRecording(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const uint32_t most = args.U32(1);
  const uint32_t times = args.UpTo(2, static_cast<uint32_t>(protocol::DeviceTimes::kEach));
  if (!args.ok()) return args.Throw("remoteStartRecording");
  if (remote != nullptr) remote->owner->StartRecording(most, static_cast<protocol::DeviceTimes>(times));
  return nullptr;
}

napi_value RemoteStopRecording(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  if (!args.ok()) return args.Throw("remoteStopRecording");
  if (remote != nullptr) remote->owner->StopRecording();
  return nullptr;
}

napi_value RemoteTakeTimes(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Environment::Remote* const remote = RemoteOf(args);
  const std::span<const std::byte> into = args.Bytes(1);
  args.Require(reinterpret_cast<uintptr_t>(into.data()) % alignof(protocol::RecordedTime) == 0);
  if (!args.ok()) return args.Throw("remoteTakeTimes");
  auto* const first = reinterpret_cast<protocol::RecordedTime*>(const_cast<std::byte*>(into.data()));
  const std::span times(first, into.size() / sizeof(protocol::RecordedTime));
  const Recorder::Taken taken = remote == nullptr ? Recorder::Taken{} : remote->owner->TakeTimes(times);
  const double numbers[] = {static_cast<double>(taken.count), static_cast<double>(taken.dropped)};
  return NumbersValue(env, numbers);
}

}  // namespace

bool DefineRemoteOwner(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("remoteOpen", RemoteOpen),
      self.Function("remoteWatch", RemoteWatch),
      self.Function("remoteEnd", RemoteEnd),
      self.Function("endWithParent", EndWithParent),
      self.Function("remoteTake", RemoteTake),
      self.Function("remoteRelease", RemoteRelease),
      self.Function("remoteWrite", RemoteWrite),
      self.Function("remoteRead", RemoteRead),
      self.Function("remoteMap", RemoteMap),
      self.Function("remoteSubmit", RemoteSubmit),
      self.Function("remoteReserveHandles", RemoteReserveHandles),
      self.Function("remoteReserveFailure", RemoteReserveFailure),
      self.Function("remoteDefineGraph", RemoteDefineGraph),
      self.Function("remoteReserveStream", RemoteReserveStream),
      self.Function("remoteLastTicket", RemoteLastTicket),
      self.Function("remotePendingPoints", RemotePendingPoints),
      self.Function("remoteArm", RemoteArm),
      self.Function("remoteFailures", RemoteFailures),
      self.Function("remoteReported", RemoteReported),
      self.Function("remoteReleaseHold", RemoteReleaseHold),
      self.Function("remoteFailExternal", RemoteFailExternal),
      self.Function("remoteReportedOf", RemoteReportedOf),
      self.Function("remoteLoss", RemoteLoss),
      self.Function("remoteEnded", RemoteEnded),
      self.Function("remoteHung", RemoteHung),
      self.Function("remoteStats", RemoteStats),
      self.Function("remoteBusyStreams", RemoteBusyStreams),
      self.Function("remoteHold", RemoteHold),
      self.Function("remoteStartRecording", RemoteStartRecording),
      self.Function("remoteStopRecording", RemoteStopRecording),
      self.Function("remoteTakeTimes", RemoteTakeTimes),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
