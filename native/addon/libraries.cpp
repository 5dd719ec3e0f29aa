#include "addon/libraries.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "addon/args.h"
#include "addon/environment.h"
#include "addon/values.h"
#include "cpu/openblas.h"
#include "cuda/communicator.h"
#include "cuda/libraries.h"

namespace millrace {
namespace {

napi_value InstallPlan(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  const std::optional<hal::LibraryPlan> plan = hal::ReadPlan(args.Words(2));
  args.Require(plan.has_value());
  if (!args.ok()) return args.Throw("installPlan");
  if (controlled == nullptr) return NotControlled(env, "installPlan");
  auto installed = controlled->channel->InstallPlan(handle, *plan);
  if (!installed.ok()) return ThrowFailure(env, *controlled->channel, "installPlan", installed.status());
  return LibraryValue(env, installed.value());
}

napi_value Libraries(napi_env env, napi_callback_info) {
  std::vector<hal::LibraryInfo> found = cuda::FindLibraries();
  auto openblas = cpu::OpenBlas::FromEnvironment();
  if (openblas.ok() && openblas.value() != nullptr) found.push_back(openblas.value()->info());
  return ArrayValue(env, found, [&](const hal::LibraryInfo& info) { return LibraryValue(env, info); });
}

napi_value HasCufft(napi_env env, napi_callback_info) {
  return BoolValue(env, cuda::HasTransforms());
}

struct Opening {
  std::vector<cuda::Communicator::Member> members;
  uint32_t size = 0;
  std::optional<cuda::NcclUniqueId> id;
  Result<uint32_t> number = Status(StatusCode::kInternal, "not opened yet");
  std::string detail;
};

/// Takes the ordinals of the devices, the ranks of each, the size of the communicator, and an id or no bytes.
napi_value OpenCommunicator(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const auto opening = std::make_shared<Opening>();
  const std::vector<uint64_t> ordinals = args.Words(0);
  const std::vector<uint64_t> ranks = args.Words(1);
  opening->size = args.U32(2);
  const std::span<const std::byte> id = args.Bytes(3);
  args.Require(!ordinals.empty() && ordinals.size() == ranks.size() && ranks.size() <= opening->size);
  args.Require(id.empty() ? ranks.size() == opening->size : id.size() == sizeof(cuda::NcclUniqueId));
  args.Require(std::ranges::all_of(ordinals, [](uint64_t ordinal) { return ordinal < cuda::kMaxDevices; }));
  args.Require(std::ranges::all_of(ranks, [&](uint64_t rank) { return rank < opening->size; }));
  if (!args.ok()) return args.Throw("openCommunicator");
  for (size_t n = 0; n < ranks.size(); ++n)
    opening->members.push_back({static_cast<uint32_t>(ordinals[n]), static_cast<uint32_t>(ranks[n])});
  if (!id.empty()) std::memcpy(&opening->id.emplace(), id.data(), id.size());
  Deliveries* const deliveries = args.self().OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "openCommunicator", kNoFunction);
  return deliveries->PromiseOff(
      env,
      [opening, owner = args.self().communicators] {
        opening->number = cuda::Communicator::Open(opening->members, opening->size,
                                                   opening->id ? &*opening->id : nullptr, owner, opening->detail);
      },
      [opening] { opening->number = kNoThread; },
      [opening](napi_env env) -> napi_value {
        if (opening->number.ok()) return NumberValue(env, opening->number.value());
        const std::string what = opening->detail.empty() ? "openCommunicator" : opening->detail;
        return ThrowStatus(env, what.c_str(), opening->number.status());
      });
}

/// An id for ranks of several processes; undefined without the library.
napi_value CommunicatorId(napi_env env, napi_callback_info) {
  const std::optional<cuda::NcclUniqueId> id = cuda::Communicator::MakeId();
  napi_value buffer = nullptr;
  if (!id || napi_create_buffer_copy(env, id->bytes.size(), id->bytes.data(), nullptr, &buffer) != napi_ok)
    return Undefined(env);
  return buffer;
}

/// Why it does not work, as a CommunicatorFault.
napi_value CommunicatorState(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t number = args.U32(0);
  if (!args.ok()) return args.Throw("communicatorState");
  const auto found = cuda::Communicator::Find(number);
  return NumberValue(env, static_cast<double>(found ? found->fault() : cuda::CommunicatorFault::kClosed));
}

/// Takes the number and a CommunicatorFault.
napi_value AbortCommunicator(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  const uint32_t number = args.U32(0);
  const auto why = static_cast<cuda::CommunicatorFault>(args.U32(1));
  args.Require(why > cuda::CommunicatorFault::kNone && why <= cuda::CommunicatorFault::kTimeout);
  if (!args.ok()) return args.Throw("abortCommunicator");
  if (const auto found = cuda::Communicator::Find(number)) found->Abort(why);
  return Undefined(env);
}

napi_value CloseCommunicator(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const auto found = cuda::Communicator::Find(args.U32(0));
  if (!args.ok()) return args.Throw("closeCommunicator");
  Deliveries* const deliveries = args.self().OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "closeCommunicator", kNoFunction);
  return deliveries->PromiseOff(
      env,
      [found] {
        if (found != nullptr) found->Close();
      },
      [] {}, [](napi_env env) -> napi_value { return Undefined(env); });
}

}  // namespace

napi_value LibraryValue(napi_env env, const hal::LibraryInfo& info) {
  return ObjectValue(env).Set("name", info.name).Set("version", info.version).Set("path", info.path).value();
}

bool DefineLibraries(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("installPlan", InstallPlan),
      self.Function("libraries", Libraries),
      self.Function("hasCufft", HasCufft),
      self.Function("openCommunicator", OpenCommunicator),
      self.Function("communicatorId", CommunicatorId),
      self.Function("communicatorState", CommunicatorState),
      self.Function("abortCommunicator", AbortCommunicator),
      self.Function("closeCommunicator", CloseCommunicator),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
