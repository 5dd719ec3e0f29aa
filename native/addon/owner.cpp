// More than 400 lines: one function per call of an owner.
#include "addon/owner.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "addon/args.h"
#include "addon/channel_values.h"
#include "addon/environment.h"
#include "addon/values.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

napi_value ClosedChannel(napi_env env, const char* function) {
  return ThrowStatus(env, function, Status(StatusCode::kState, "the device is not attached to this thread"));
}

napi_value OpenPort(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  napi_valuetype type = napi_undefined;
  if (!args.ok() || args.self().port != nullptr || napi_typeof(env, args[1], &type) != napi_ok ||
      type != napi_function) {
    return args.Throw("openPort");
  }
  Environment& self = args.self();
  HeldBytes record = self.Hold(args[0]);
  if (record.bytes.size() < protocol::kMaxRecordBytes + sizeof(protocol::SubmitCall)) {
    self.Release(record);
    return args.Throw("openPort");
  }
  self.port = Port::Open(env, args[1]);
  if (self.port == nullptr) {
    self.Release(record);
    return ThrowStatus(env, "openPort", Status(StatusCode::kInternal, "creating a thread-safe function"));
  }
  self.record = record;
  return nullptr;
}

napi_value ClosePort(napi_env env, napi_callback_info info) {
  Args<0> args(env, info);
  if (!args.ok() || args.self().port == nullptr) return nullptr;
  Environment& self = args.self();
  self.port->Close();
  self.port = nullptr;
  self.Release(self.record);
  return nullptr;
}

napi_value RefPort(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const bool on = args.Bool(0);
  if (!args.ok()) return args.Throw("refPort");
  if (Port* const port = args.self().port.get()) port->Ref(env, on);
  return nullptr;
}

/// Numbers the environments that share devices, in this process.
std::atomic<uint32_t> next_owner{1};

napi_value Attach(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const uint32_t id = args.U32(0);
  const bool is_shared = args.Bool(1);
  if (!args.ok()) return args.Throw("attach");
  Environment& self = args.self();
  if (self.FindAttached(id) == nullptr) {
    // Ids of open channels are consecutive, so the list stays short.
    std::shared_ptr<Channel> found = Registry::Instance().Find(id);
    if (found == nullptr) return ClosedChannel(env, "attach");
    if (id >= self.attached.size()) self.attached.resize(id + 1);
    self.attached[id].channel = std::move(found);
    self.attached[id].owner_id = is_shared ? next_owner.fetch_add(1) : 0;
  }
  ++self.attached[id].count;
  return NumberValue(env, self.attached[id].owner_id);
}

napi_value Detach(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = args.U32(0);
  if (!args.ok()) return args.Throw("detach");
  Environment& self = args.self();
  if (self.FindAttached(id) == nullptr) return nullptr;
  if (--self.attached[id].count == 0) self.attached[id].channel.reset();
  return nullptr;
}

napi_value CountShared(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const uint64_t bytes = args.U53(1);
  // A number above the actual size would make V8 collect at every turn.
  napi_value length = nullptr;
  double most = 0;
  args.Require(args.ok() && napi_get_named_property(env, args[0], "byteLength", &length) == napi_ok &&
               napi_get_value_double(env, length, &most) == napi_ok && static_cast<double>(bytes) <= most);
  if (!args.ok()) return args.Throw("countShared");
  args.self().CountShared(args[0], bytes);
  return nullptr;
}

napi_value ReserveHandles(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t kind = args.UpTo(1, static_cast<uint32_t>(protocol::HandleKind::kGraph));
  const uint32_t count = args.UpTo(2, Channel::kMaxHandles);
  if (!args.ok()) return args.Throw("reserveHandles");
  if (channel == nullptr) return ClosedChannel(env, "reserveHandles");
  return NumberValue(env, channel->ReserveHandles(static_cast<protocol::HandleKind>(kind), count));
}

/// Of the thread, at the channel that the first argument names.
template <size_t N>
uint32_t OwnerId(Args<N>& args) {
  return args.self().attached[args.U32(0)].owner_id;
}

napi_value DefineGraph(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.Handle(1);
  const std::span<const std::byte> definition = args.Bytes(2);
  if (!args.ok()) return args.Throw("defineGraph");
  if (channel == nullptr) return ClosedChannel(env, "defineGraph");
  channel->DefineGraph(handle, definition, OwnerId(args));
  return nullptr;
}

napi_value ReserveStream(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("reserveStream");
  if (channel == nullptr) return ClosedChannel(env, "reserveStream");
  return NumberValue(env, static_cast<double>(channel->ReserveStream(args.self().port, OwnerId(args))));
}

napi_value LastTicket(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  if (!args.ok()) return args.Throw("lastTicket");
  if (channel == nullptr) return ClosedChannel(env, "lastTicket");
  return NumberValue(env, static_cast<double>(channel->LastTicket(stream)));
}

napi_value PendingPoints(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("pendingPoints");
  return PointsValue(env, channel == nullptr ? std::vector<SubmissionQueue::Point>() : channel->PendingPoints());
}

/// The hot path: creates no object and throws nothing.
napi_value Submit(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  if (napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data) != napi_ok || data == nullptr) return nullptr;
  auto& self = *static_cast<Environment*>(data);
  if (self.record.bytes.empty()) return nullptr;  // The port is closed.
  auto& call = *reinterpret_cast<protocol::SubmitCall*>(self.record.bytes.data() + protocol::kMaxRecordBytes);
  Channel* const channel = self.FindAttached(call.channel);
  Channel::Submission submission{0, StatusCode::kState};
  if (channel != nullptr && call.bytes <= protocol::kMaxRecordBytes) {
    const uint64_t now = channel->IsRecorded() ? hal::SteadyNow() : 0;
    submission = channel->Submit(self.record.bytes.first(call.bytes));
    if (now != 0 && submission.ticket != 0) {
      channel->NoteSubmitted(self.record.bytes.first(call.bytes), submission.ticket, now);
    }
  }
  call.ticket = submission.ticket;
  call.status = static_cast<uint32_t>(submission.refused);
  return nullptr;
}

napi_value Arm(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  const uint64_t ticket = args.U53(2);
  if (!args.ok()) return args.Throw("arm");
  return BoolValue(env, channel == nullptr || !channel->Arm(stream, ticket));
}

napi_value Failures(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  const uint32_t from = args.U32(2);
  const uint32_t count = args.U32(3);
  if (!args.ok()) return args.Throw("failures");
  const FailureLog::Part part = channel == nullptr ? FailureLog::Part{} : channel->Failures(stream, from, count);
  return FailuresValue(env, part);
}

/// A call with a stream and a ticket. A closed device has no such stream any more.
napi_value CallWithPoint(napi_env env, napi_callback_info info, const char* name,
                         void (Channel::*call)(uint32_t, Ticket)) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  const uint64_t ticket = args.U53(2);
  if (!args.ok()) return args.Throw(name);
  if (channel != nullptr) (channel->*call)(stream, ticket);
  return nullptr;
}

napi_value Reported(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "reported", &Channel::Reported);
}

napi_value ReportedOf(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.U32(1);
  const uint64_t offset = args.U53(2);
  const uint64_t bytes = args.U53(3);
  if (!args.ok()) return args.Throw("reportedOf");
  if (channel != nullptr) channel->ReportedOf(handle, offset, bytes);
  return nullptr;
}

napi_value Loss(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("loss");
  if (channel == nullptr) return LossValue(env, StatusCode::kState, 0);
  return LossValue(env, channel->LostStatus(), channel->LostDriverCode());
}

napi_value Stats(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("stats");
  if (channel == nullptr) return ClosedChannel(env, "stats");
  return StatsValue(env, channel->Stats());
}

napi_value BusyStreams(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("busyStreams");
  return StreamsValue(env, channel == nullptr ? std::vector<uint32_t>() : channel->BusyStreams());
}

napi_value ReleaseHold(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "releaseHold", &Channel::ReleaseHold);
}

napi_value FailExternal(napi_env env, napi_callback_info info) {
  return CallWithPoint(env, info, "failExternal", &Channel::FailExternal);
}

napi_value ReadyExternal(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  if (!args.ok()) return args.Throw("readyExternal");
  return NumberValue(env, channel == nullptr ? 0 : static_cast<double>(channel->ReadyExternal(stream)));
}

/// A bigint, or undefined for no address.
napi_value AddressValue(napi_env env, std::optional<uint64_t> address) {
  napi_value value = nullptr;
  return address && napi_create_bigint_uint64(env, *address, &value) == napi_ok ? value : Undefined(env);
}

napi_value StreamHandle(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t stream = args.U32(1);
  if (!args.ok()) return args.Throw("streamHandle");
  return AddressValue(env, channel == nullptr ? std::nullopt : channel->StreamHandle(stream));
}

napi_value IsPeerGranted(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  const std::shared_ptr<Channel> channel = Registry::Instance().Find(args.U32(0));
  const uint32_t ordinal = args.U32(1);
  const bool is_pool = args.Bool(2);
  if (!args.ok()) return args.Throw("isPeerGranted");
  const auto what = is_pool ? protocol::PeerWhat::kPool : protocol::PeerWhat::kMemory;
  return BoolValue(env, channel != nullptr && channel->access().IsGranted(ordinal, what));
}

napi_value MemoryAddress(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.U32(1);
  if (!args.ok()) return args.Throw("memoryAddress");
  return AddressValue(env, channel == nullptr ? std::nullopt : channel->MemoryAddress(handle));
}

napi_value EnterContext(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("enterContext");
  if (channel == nullptr) return ClosedChannel(env, "enterContext");
  Result<uint64_t> context = channel->EnterContext();
  if (!context.ok()) return ThrowFailure(env, *channel, "enterContext", context.status());
  return AddressValue(env, context.value());
}

napi_value LeaveContext(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("leaveContext");
  if (channel == nullptr) return ClosedChannel(env, "leaveContext");
  channel->LeaveContext();
  return nullptr;
}

/// Whether `fn`, called with the driver's stream and context, returned true and threw nothing.
bool CallsAndAccepts(napi_env env, napi_value fn, uint64_t stream, uint64_t context) {
  napi_value self = Undefined(env);
  const std::array given = {AddressValue(env, stream), AddressValue(env, context)};
  napi_value answer = nullptr;
  bool is_accepted = false;
  return napi_call_function(env, self, fn, given.size(), given.data(), &answer) == napi_ok &&
         napi_get_value_bool(env, answer, &is_accepted) == napi_ok && is_accepted;
}

/// Lists what a function calls on a stream, and binds that to a kernel handle.
napi_value CaptureCalls(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.Handle(1);
  napi_valuetype type = napi_undefined;
  args.Require(args.ok() && napi_typeof(env, args[2], &type) == napi_ok && type == napi_function);
  if (!args.ok()) return args.Throw("captureCalls");
  if (channel == nullptr) return ClosedChannel(env, "captureCalls");
  // The function may close the device.
  const std::shared_ptr<Channel> kept = channel->shared_from_this();
  Result<uint64_t> context = kept->EnterContext();
  if (!context.ok()) return ThrowFailure(env, *kept, "captureCalls", context.status());
  Status failed;
  {
    Result<std::unique_ptr<hal::CallCapture>> capture = kept->BeginCapture();
    failed = capture.status();
    const bool is_accepted = failed.ok() && CallsAndAccepts(env, args[2], capture.value()->stream(), context.value());
    if (failed.ok()) {
      Result<std::shared_ptr<hal::Kernel>> captured = capture.value()->End();
      failed = captured.status();
      if (failed.ok() && is_accepted) kept->BindCaptured(handle, std::move(captured).value());
    }
  }
  kept->LeaveContext();
  bool is_thrown = false;
  if (napi_is_exception_pending(env, &is_thrown) == napi_ok && is_thrown) return nullptr;
  return failed.ok() ? nullptr : ThrowFailure(env, *kept, "captureCalls", failed);
}

napi_value FailCaptured(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.Handle(1);
  if (!args.ok()) return args.Throw("failCaptured");
  if (channel != nullptr) channel->FailKernel(handle, Status(StatusCode::kCompile, "its calls were not captured"));
  return nullptr;
}

napi_value DropCaptured(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t handle = args.Handle(1);
  if (!args.ok()) return args.Throw("dropCaptured");
  if (channel != nullptr) channel->DropKernel(handle);
  return nullptr;
}

napi_value StartRecording(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Channel* channel = args.Attached(0);
  const uint32_t most = args.U32(1);
  const uint32_t times = args.U32(2);
  args.Require(times <= static_cast<uint32_t>(protocol::DeviceTimes::kEach));
  if (!args.ok()) return args.Throw("startRecording");
  if (channel == nullptr) return ClosedChannel(env, "startRecording");
  channel->StartRecording(OwnerId(args), most, static_cast<protocol::DeviceTimes>(times));
  return nullptr;
}

napi_value StopRecording(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Channel* channel = args.Attached(0);
  if (!args.ok()) return args.Throw("stopRecording");
  if (channel != nullptr) channel->StopRecording(OwnerId(args));
  return nullptr;
}

/// How many entries of RecordedTime it wrote, and how many were dropped. A closed device has none any more.
napi_value TakeTimes(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const std::span<const std::byte> into = args.Bytes(1);
  args.Require(reinterpret_cast<uintptr_t>(into.data()) % alignof(protocol::RecordedTime) == 0);
  if (!args.ok()) return args.Throw("takeTimes");
  auto* const first = reinterpret_cast<protocol::RecordedTime*>(const_cast<std::byte*>(into.data()));
  const std::span times(first, into.size() / sizeof(protocol::RecordedTime));
  const Recorder::Taken taken = channel == nullptr ? Recorder::Taken{} : channel->TakeTimes(OwnerId(args), times);
  const double numbers[] = {static_cast<double>(taken.count), static_cast<double>(taken.dropped)};
  return NumbersValue(env, numbers);
}

napi_value HoldChannel(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Channel* channel = args.Attached(0);
  const bool on = args.Bool(1);
  if (!args.ok()) return args.Throw("holdChannel");
  if (channel == nullptr) return ClosedChannel(env, "holdChannel");
  channel->Hold(on);
  return nullptr;
}

}  // namespace

bool DefineOwner(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("openPort", OpenPort),
      self.Function("closePort", ClosePort),
      self.Function("refPort", RefPort),
      self.Function("attach", Attach),
      self.Function("detach", Detach),
      self.Function("countShared", CountShared),
      self.Function("reserveHandles", ReserveHandles),
      self.Function("defineGraph", DefineGraph),
      self.Function("reserveStream", ReserveStream),
      self.Function("lastTicket", LastTicket),
      self.Function("pendingPoints", PendingPoints),
      self.Function("submit", Submit),
      self.Function("arm", Arm),
      self.Function("failures", Failures),
      self.Function("reported", Reported),
      self.Function("reportedOf", ReportedOf),
      self.Function("loss", Loss),
      self.Function("stats", Stats),
      self.Function("busyStreams", BusyStreams),
      self.Function("releaseHold", ReleaseHold),
      self.Function("failExternal", FailExternal),
      self.Function("readyExternal", ReadyExternal),
      self.Function("enterContext", EnterContext),
      self.Function("leaveContext", LeaveContext),
      self.Function("captureCalls", CaptureCalls),
      self.Function("failCaptured", FailCaptured),
      self.Function("dropCaptured", DropCaptured),
      self.Function("streamHandle", StreamHandle),
      self.Function("memoryAddress", MemoryAddress),
      self.Function("isPeerGranted", IsPeerGranted),
      self.Function("holdChannel", HoldChannel),
      self.Function("startRecording", StartRecording),
      self.Function("stopRecording", StopRecording),
      self.Function("takeTimes", TakeTimes),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
