#include "addon/device_calls.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "addon/args.h"
#include "addon/environment.h"
#include "addon/values.h"

namespace millrace {
namespace {

/// One call: its first argument is the device; the caller reads the others from `args`. Throws on failure.
template <size_t N>
class Call {
 public:
  Call(napi_env env, napi_callback_info info, const char* function)
      : args(env, info), env_(env), function_(function), channel_(args.U32(0)) {}

  template <typename Ask, typename Make>
  napi_value Answer(Ask ask, Make make) {
    Channel* const channel = Find();
    if (channel == nullptr) return nullptr;
    auto answer = ask(*channel);
    if (!answer.ok()) return ThrowFailure(env_, *channel, function_, answer.status());
    return make(answer.value());
  }
  template <typename Ask>
  napi_value Do(Ask ask) {
    Channel* const channel = Find();
    if (channel == nullptr) return nullptr;
    const Status status = ask(*channel);
    return status.ok() ? Undefined(env_) : ThrowFailure(env_, *channel, function_, status);
  }
  napi_value Number(auto ask) {
    return Answer(ask, [this](auto value) { return NumberValue(env_, static_cast<double>(value)); });
  }

  Args<N> args;

 private:
  /// Null with a pending exception.
  Channel* Find() {
    if (!args.ok()) {
      args.Throw(function_);
      return nullptr;
    }
    Environment::Controlled* const controlled = args.self().FindControlled(channel_);
    if (controlled != nullptr) return controlled->channel.get();
    NotControlled(env_, function_);
    return nullptr;
  }

  napi_env env_;
  const char* function_;
  uint32_t channel_;
};

/// A new Uint8Array.
napi_value HandleValue(napi_env env, const hal::IpcHandle& handle) {
  napi_value buffer = nullptr;
  napi_value view = nullptr;
  void* data = nullptr;
  if (napi_create_arraybuffer(env, handle.size(), &data, &buffer) != napi_ok) return nullptr;
  std::memcpy(data, handle.data(), handle.size());
  napi_create_typedarray(env, napi_uint8_array, handle.size(), buffer, 0, &view);
  return view;
}

template <size_t N>
hal::IpcHandle HandleOf(Args<N>& args, size_t n) {
  hal::IpcHandle handle{};
  const std::span<const std::byte> bytes = args.Bytes(n);
  args.Require(bytes.size() == handle.size());
  if (args.ok()) std::copy(bytes.begin(), bytes.end(), handle.begin());
  return handle;
}

template <size_t N>
protocol::PeerWhat WhatOf(Args<N>& args, size_t n) {
  return static_cast<protocol::PeerWhat>(args.UpTo(n, static_cast<uint32_t>(protocol::PeerWhat::kPool)));
}

// ── Modules ────────────────────────────────────────────────────────────────────────────────────────────────────────

napi_value LoadModule(napi_env env, napi_callback_info info) {
  Call<3> call(env, info, "loadModule");
  const uint32_t module = call.args.U32(1);
  const std::span<const std::byte> image = call.args.Bytes(2);
  return call.Do([=](Channel& channel) { return channel.LoadModule(module, image); });
}

napi_value BindVariable(napi_env env, napi_callback_info info) {
  Call<5> call(env, info, "bindVariable");
  const uint32_t handle = call.args.Handle(1);
  const uint32_t module = call.args.U32(2);
  const std::string name = call.args.String(3);
  const uint64_t bytes = call.args.U53(4);
  return call.Number([&](Channel& channel) { return channel.BindVariable(handle, module, name, bytes); });
}

napi_value FailVariable(napi_env env, napi_callback_info info) {
  Call<4> call(env, info, "failVariable");
  const uint32_t handle = call.args.Handle(1);
  const uint64_t bytes = call.args.U53(2);
  const FailureId failure = call.args.U53(3);
  return call.Do([=](Channel& channel) -> Status {
    channel.FailVariable(handle, bytes, failure);
    return {};
  });
}

napi_value ReserveFailure(napi_env env, napi_callback_info) {
  return NumberValue(env, static_cast<double>(Channel::ReserveFailure()));
}

// ── The pool ───────────────────────────────────────────────────────────────────────────────────────────────────────

napi_value PoolStats(napi_env env, napi_callback_info info) {
  Call<1> call(env, info, "poolStats");
  return call.Answer(
      [](Channel& channel) { return channel.WithDevice([](hal::Device& device) { return device.PoolUse(); }); },
      [env](const hal::PoolStats& stats) {
        return ObjectValue(env)
            .Set("total", static_cast<double>(stats.total))
            .Set("free", static_cast<double>(stats.free))
            .Set("used", static_cast<double>(stats.used))
            .Set("usedHigh", static_cast<double>(stats.used_high))
            .Set("reserved", static_cast<double>(stats.reserved))
            .Set("reservedHigh", static_cast<double>(stats.reserved_high))
            .value();
      });
}

napi_value SetReleaseThreshold(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "setReleaseThreshold");
  const uint64_t bytes = call.args.U53(1);
  return call.Do([bytes](Channel& channel) {
    return channel.WithDevice([bytes](hal::Device& device) { return device.SetReleaseThreshold(bytes); });
  });
}

napi_value ReleaseThreshold(napi_env env, napi_callback_info info) {
  Call<1> call(env, info, "releaseThreshold");
  return call.Number([](Channel& channel) {
    return channel.WithDevice([](hal::Device& device) { return device.ReleaseThreshold(); });
  });
}

napi_value TrimPool(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "trimPool");
  const uint64_t keep_bytes = call.args.U53(1);
  return call.Do([keep_bytes](Channel& channel) {
    return channel.WithDevice([keep_bytes](hal::Device& device) { return device.Trim(keep_bytes); });
  });
}

napi_value ResetHighWater(napi_env env, napi_callback_info info) {
  Call<1> call(env, info, "resetHighWater");
  return call.Do(
      [](Channel& channel) { return channel.WithDevice([](hal::Device& device) { return device.ResetHighWater(); }); });
}

// ── Peers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

napi_value PeerState(napi_env env, napi_callback_info info) {
  Call<3> call(env, info, "peerState");
  const uint32_t ordinal = call.args.U32(1);
  const protocol::PeerWhat what = WhatOf(call.args, 2);
  return call.Answer([=](Channel& channel) { return channel.Peer(ordinal, what); },
                     [env](const hal::PeerState& state) {
                       return ObjectValue(env)
                           .Set("canGrant", BoolValue(env, state.can_grant))
                           .Set("isGranted", BoolValue(env, state.is_granted))
                           .value();
                     });
}

napi_value SetPeer(napi_env env, napi_callback_info info) {
  Call<4> call(env, info, "setPeer");
  const uint32_t ordinal = call.args.U32(1);
  const protocol::PeerWhat what = WhatOf(call.args, 2);
  const bool is_granted = call.args.Bool(3);
  return call.Answer([=](Channel& channel) { return channel.SetPeer(ordinal, what, is_granted); },
                     [env](bool is_done) { return BoolValue(env, is_done); });
}

napi_value ProbePeer(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "probePeer");
  const uint32_t other = call.args.U32(1);
  return call.Number([other](Channel& channel) { return channel.ProbePeer(other); });
}

// ── Partitions
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────

napi_value Divide(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "divide");
  std::vector<uint32_t> shares;
  for (const uint64_t share : call.args.Words(1)) {
    call.args.Require(share <= UINT32_MAX);
    shares.push_back(static_cast<uint32_t>(share));
  }
  call.args.Require(!shares.empty());
  return call.Answer(
      [&](Channel& channel) { return channel.WithDevice([&](hal::Device& device) { return device.Divide(shares); }); },
      [env](const hal::Division& division) {
        return ObjectValue(env)
            .Set("unit", division.unit)
            .Set("partitions", ArrayValue(env, division.partitions,
                                          [env](const hal::Partition& partition) {
                                            return ObjectValue(env)
                                                .Set("id", partition.id)
                                                .Set("multiprocessors", partition.multiprocessors)
                                                .value();
                                          }))
            .value();
      });
}

napi_value EndPartition(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "endPartition");
  const uint32_t id = call.args.U32(1);
  return call.Do([id](Channel& channel) {
    return channel.WithDevice([id](hal::Device& device) { return device.EndPartition(id); });
  });
}

// ── Events and other processes ──────────────────────────────────────────────────────────────────────────────────────

napi_value AlignClocks(napi_env env, napi_callback_info info) {
  Call<1> call(env, info, "alignClocks");
  return call.Do([](Channel& channel) { return channel.AlignClocks(); });
}

napi_value Elapsed(napi_env env, napi_callback_info info) {
  Call<3> call(env, info, "elapsed");
  const uint32_t start = call.args.U32(1);
  const uint32_t end = call.args.U32(2);
  return call.Number([=](Channel& channel) { return channel.Elapsed(start, end); });
}

napi_value ExportEvent(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "exportEvent");
  const uint32_t event_handle = call.args.Handle(1);
  return call.Answer([event_handle](Channel& channel) { return channel.ExportEvent(event_handle); },
                     [env](const hal::IpcHandle& handle) { return HandleValue(env, handle); });
}

napi_value OpenEvent(napi_env env, napi_callback_info info) {
  Call<3> call(env, info, "openEvent");
  const uint32_t event_handle = call.args.Handle(1);
  const hal::IpcHandle ipc = HandleOf(call.args, 2);
  return call.Do([&](Channel& channel) { return channel.OpenEvent(event_handle, ipc); });
}

napi_value ExportMemory(napi_env env, napi_callback_info info) {
  Call<2> call(env, info, "exportMemory");
  const uint32_t memory = call.args.Handle(1);
  return call.Answer([memory](Channel& channel) { return channel.ExportMemory(memory); },
                     [env](const hal::IpcHandle& handle) { return HandleValue(env, handle); });
}

napi_value OpenMemory(napi_env env, napi_callback_info info) {
  Call<4> call(env, info, "openMemory");
  const uint32_t memory = call.args.Handle(1);
  const hal::IpcHandle ipc = HandleOf(call.args, 2);
  const uint64_t bytes = call.args.U53(3);
  return call.Do([&](Channel& channel) { return channel.OpenMemory(memory, ipc, bytes); });
}

}  // namespace

bool DefineDeviceCalls(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("loadModule", LoadModule),
      self.Function("bindVariable", BindVariable),
      self.Function("failVariable", FailVariable),
      self.Function("reserveFailure", ReserveFailure),
      self.Function("poolStats", PoolStats),
      self.Function("setReleaseThreshold", SetReleaseThreshold),
      self.Function("releaseThreshold", ReleaseThreshold),
      self.Function("trimPool", TrimPool),
      self.Function("resetHighWater", ResetHighWater),
      self.Function("peerState", PeerState),
      self.Function("setPeer", SetPeer),
      self.Function("probePeer", ProbePeer),
      self.Function("divide", Divide),
      self.Function("endPartition", EndPartition),
      self.Function("elapsed", Elapsed),
      self.Function("alignClocks", AlignClocks),
      self.Function("exportEvent", ExportEvent),
      self.Function("openEvent", OpenEvent),
      self.Function("exportMemory", ExportMemory),
      self.Function("openMemory", OpenMemory),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
