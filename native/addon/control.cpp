// More than 400 lines: a short function for each call of the control thread.
#include "addon/control.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addon/args.h"
#include "addon/environment.h"
#include "addon/libraries.h"
#include "addon/values.h"
#include "cuda/device_link.h"
#include "cuda/nvrtc.h"
#include "runtime/registry.h"

namespace millrace {
namespace {

napi_value DeviceInfoValue(napi_env env, const hal::DeviceInfo& info) {
  const double capability[] = {static_cast<double>(info.compute_major), static_cast<double>(info.compute_minor)};
  const double block[] = {static_cast<double>(info.max_block[0]), static_cast<double>(info.max_block[1]),
                          static_cast<double>(info.max_block[2])};
  const double grid[] = {static_cast<double>(info.max_grid[0]), static_cast<double>(info.max_grid[1]),
                         static_cast<double>(info.max_grid[2])};
  const double priorities[] = {static_cast<double>(info.least_priority), static_cast<double>(info.greatest_priority)};
  const std::vector<double> textures(info.texture_limits.begin(), info.texture_limits.end());
  ObjectValue value(env);
  value.Set("ordinal", info.ordinal)
      .Set("name", info.name)
      .Set("totalMemoryBytes", static_cast<double>(info.total_memory_bytes))
      .Set("computeCapability", NumbersValue(env, capability))
      .Set("maxBlock", NumbersValue(env, block))
      .Set("maxGrid", NumbersValue(env, grid))
      .Set("maxParameterBytes", info.max_parameter_bytes)
      .Set("textureLimits", NumbersValue(env, textures))
      .Set("priorityRange", NumbersValue(env, priorities))
      .Set("libraries", ArrayValue(env, info.libraries,
                                   [&](const hal::LibraryInfo& library) { return LibraryValue(env, library); }));
#define MR_SET(member, name, attribute, on_cpu) value.Set(name, info.member);
  MR_DEVICE_PROPERTIES(MR_SET)
#undef MR_SET
  return value.value();
}

napi_value Enumerate(napi_env env, napi_callback_info) {
  return ArrayValue(env, Registry::Instance().Enumerate(), [&](const hal::BackendReport& report) {
    return ObjectValue(env)
        .Set("name", report.name)
        .Set("devices",
             ArrayValue(env, report.devices, [&](const hal::DeviceInfo& info) { return DeviceInfoValue(env, info); }))
        .Set("reason", report.reason)
        .Set("help", ArrayValue(env, report.help, [&](const std::string& line) { return StringValue(env, line); }))
        .Set("driverVersion", report.driver_version)
        .value();
  });
}

/// Failures of a process that has a device for another one begin at multiples of 2 to the power of this.
constexpr uint32_t kFailureIdBits = 32;

/// Ids of channels are indices of tables.
constexpr uint32_t kMostDevices = 1 << 16;

/// Maps the memory of an owner in another process, from the file that this one inherited.
Status MapOfOwner(DevicePages& pages, int file, std::span<std::byte> timeline, std::span<std::byte> arena,
                  size_t arena_bytes) {
  auto memory = RemoteMemory::Open(file, timeline.size(), arena_bytes);
  if (!memory.ok()) return memory.status();
  pages.memory = std::move(memory).value();
  pages.timeline = pages.memory->MapTimeline(timeline);
  pages.arena = pages.memory->MapArena(arena, arena_bytes);
  if (!pages.timeline.is_mapped() || !pages.arena.is_mapped())
    return {StatusCode::kOutOfMemory, "mapping memory that processes share"};
  pages.host = std::make_shared<remote::Host>(pages.memory->block());
  return {};
}

/// MOST_THREADS in src/core/api/check-options.ts.
constexpr uint32_t kMostThreads = 1024;

napi_value OpenDevice(napi_env env, napi_callback_info info) {
  Args<14> args(env, info);
  const std::string name = args.String(0);
  const uint32_t ordinal = args.U32(1);
  const uint64_t arena_bytes = args.U53(4);
  const uint32_t max_pending = args.UpTo(5, protocol::kMaxPending);
  const bool is_guarded = args.Bool(6);
  const uint64_t memory_limit = args.U53(7);
  const auto schedule =
      static_cast<protocol::Schedule>(args.UpTo(8, static_cast<uint32_t>(protocol::Schedule::kBlocking)));
  const uint64_t seed = args.U53(9);
  const auto file = static_cast<int>(args.UpTo(10, INT32_MAX));
  const uint32_t number = args.UpTo(11, kMostDevices);
  const std::chrono::milliseconds launch_timeout(args.UpTo(12, INT32_MAX));
  const uint32_t threads = args.UpTo(13, kMostThreads);
  args.Require(file != 0 || (number == 0 && launch_timeout.count() == 0));
  hal::Backend* backend = args.ok() ? Registry::Instance().FindBackend(name) : nullptr;
  if (backend == nullptr) return args.Throw("openDevice");
  Environment& self = args.self();
  Environment::Controlled opened;
  opened.timeline = self.Hold(args[2]);
  opened.arena = self.Hold(args[3]);
  const auto give_up = [&] {
    self.Release(opened.timeline);
    self.Release(opened.arena);
  };
  const std::span<std::byte> timeline = opened.timeline.bytes;
  const std::span<std::byte> arena = opened.arena.bytes;
  // Pages outside the buffer belong to other code, so they must not be replaced.
  const bool are_whole = IsWholeGrowable(env, args[2], timeline.size()) && IsWholeGrowable(env, args[3], arena_bytes);
  if (!are_whole || timeline.size() != protocol::kMaxStreams * sizeof(protocol::TimelineSlot) || max_pending == 0) {
    give_up();
    return args.Throw("openDevice");
  }
  opened.pages = std::make_shared<DevicePages>();
  DevicePages& pages = *opened.pages;
  if (file == 0) {
    pages.timeline = SharedPages::Map(timeline.data(), timeline.size(), timeline.size());
    pages.arena = SharedPages::Map(arena.data(), arena.size(), arena_bytes);
  } else if (const Status mapped = MapOfOwner(pages, file, timeline, arena, arena_bytes); !mapped.ok()) {
    give_up();
    return ThrowStatus(env, "openDevice", mapped);
  } else {
    next_failure_id = FailureId{number} << kFailureIdBits;
  }
  auto* slots = reinterpret_cast<protocol::TimelineSlot*>(opened.pages->timeline.Native(timeline).data());
  auto channel = Registry::Instance().Open(
      *backend, {.ordinal = ordinal,
                 .timeline = {slots, protocol::kMaxStreams},
                 .max_pending = max_pending,
                 .memory_limit = memory_limit,
                 .is_guarded = is_guarded,
                 .seed = seed > UINT32_MAX ? std::optional<uint32_t>() : static_cast<uint32_t>(seed),
                 .threads = threads,
                 .schedule = schedule,
                 .memory = opened.pages,
                 .source = pages.host.get(),
                 .id = number});
  Status served = channel.ok() ? Status() : channel.status();
  if (served.ok() && pages.host != nullptr) served = pages.host->Serve(channel.value());
  if (served.ok() && pages.host != nullptr && launch_timeout.count() > 0)
    served = pages.host->EndIfHung(launch_timeout);
  if (!served.ok()) {
    give_up();
    return ThrowStatus(env, "openDevice", served);
  }
  opened.channel = std::move(channel).value();
  const uint32_t id = opened.channel->id();
  self.controlled[id] = std::move(opened);
  return NumberValue(env, id);
}

napi_value DeviceInfoOf(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  if (!args.ok()) return args.Throw("deviceInfo");
  if (controlled == nullptr) return NotControlled(env, "deviceInfo");
  return DeviceInfoValue(env, controlled->channel->info());
}

/// Begins to end the channel; the promise settles when its thread has ended, which may be never while a kernel of the
/// CPU device runs. If two ends are pending, the first releases the held memory.
template <typename Begin>
napi_value End(napi_env env, Environment& self, uint32_t id, Begin begin) {
  Deliveries* const deliveries = self.OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "ending a device", kNoFunction);
  const std::shared_ptr<Channel> channel = self.controlled[id].channel;
  const auto start = [&](std::function<void()> settle) {
    begin(*channel);
    channel->OnExit(std::move(settle));
  };
  return deliveries->Promise(env, start, [id, &self](napi_env env) {
    Registry::Instance().Remove(id);
    // From here on, no native code accesses these bytes.
    if (Environment::Controlled* const closed = self.FindControlled(id)) {
      for (auto& [handle, held] : closed->host) self.Release(held);
      for (HeldBytes& held : closed->locked) self.Release(held);
      self.Release(closed->timeline);
      self.Release(closed->arena);
      self.controlled.erase(id);
    }
    return Undefined(env);
  });
}

napi_value CloseDevice(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = args.U32(0);
  if (!args.ok()) return args.Throw("closeDevice");
  Environment::Controlled* controlled = args.self().FindControlled(id);
  if (controlled == nullptr) return NotControlled(env, "closeDevice");
  return End(env, args.self(), id, [](Channel& channel) { channel.BeginClose(); });
}

napi_value DestroyDevice(napi_env env, napi_callback_info info) {
  Args<1> args(env, info);
  const uint32_t id = args.U32(0);
  if (!args.ok()) return args.Throw("destroyDevice");
  Environment::Controlled* controlled = args.self().FindControlled(id);
  if (controlled == nullptr) return NotControlled(env, "destroyDevice");
  return End(env, args.self(), id, [](Channel& channel) { channel.BeginAbandon(); });
}

napi_value OwnerLeft(napi_env env, napi_callback_info info) {
  Args<2> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t owner_id = args.U32(1);
  args.Require(owner_id != 0);
  if (!args.ok()) return args.Throw("ownerLeft");
  if (controlled == nullptr) return NotControlled(env, "ownerLeft");
  Deliveries* const deliveries = args.self().OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "ownerLeft", kNoFunction);
  const auto start = [channel = controlled->channel, owner_id](std::function<void()> settle) {
    channel->OwnerLeft(owner_id, std::move(settle));
  };
  return deliveries->Promise(env, start, [](napi_env env) { return Undefined(env); });
}

napi_value InstallKernel(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  if (!args.ok()) return args.Throw("installKernel");
  if (controlled == nullptr) return NotControlled(env, "installKernel");
  napi_value image;
  napi_value entry;
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  size_t entry_length = 0;
  if (napi_get_named_property(env, args[2], "image", &image) != napi_ok ||
      napi_get_typedarray_info(env, image, &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array || napi_get_named_property(env, args[2], "entry", &entry) != napi_ok ||
      napi_get_value_string_utf8(env, entry, nullptr, 0, &entry_length) != napi_ok) {
    return args.Throw("installKernel");
  }
  Channel::KernelInstall install;
  install.request.image = {static_cast<const std::byte*>(data), length};
  install.request.entry.resize(entry_length);
  napi_get_value_string_utf8(env, entry, install.request.entry.data(), entry_length + 1, &entry_length);
  install.request.is_bounded = BoolProperty(env, args[2], "isBounded");
  install.request.is_launching = BoolProperty(env, args[2], "isLaunching");
  install.is_checked = BoolProperty(env, args[2], "isChecked");
  napi_value module;
  napi_valuetype kind = napi_undefined;  // Deno converts what is no number to 0.
  if (napi_get_named_property(env, args[2], "module", &module) == napi_ok &&
      napi_typeof(env, module, &kind) == napi_ok && kind == napi_number) {
    napi_get_value_uint32(env, module, &install.module.emplace());
  }
  auto installed = controlled->channel->InstallKernel(handle, install);
  if (!installed.ok()) return ThrowFailure(env, *controlled->channel, "installKernel", installed.status());
  const hal::KernelLimits& limits = installed.value();
  return ObjectValue(env)
      .Set("maxThreadsPerBlock", limits.max_threads_per_block)
      .Set("maxSharedBytes", limits.max_dynamic_shared_bytes)
      .Set("maxCooperativeBlocks", limits.max_cooperative_blocks)
      .Set("blocksAtOnce",
           ArrayValue(env, limits.blocks_at_once, [&](uint32_t blocks) { return NumberValue(env, blocks); }))
      .value();
}

napi_value FailKernel(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  const auto status = static_cast<StatusCode>(args.UpTo(2, static_cast<uint32_t>(StatusCode::kInternal)));
  args.Require(status != StatusCode::kOk);
  if (!args.ok()) return args.Throw("failKernel");
  if (controlled == nullptr) return NotControlled(env, "failKernel");
  controlled->channel->FailKernel(handle, Status(status, "the kernel was not built"));
  return nullptr;
}

napi_value RegisterHost(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  const bool page_lock = args.Bool(3);
  if (!args.ok()) return args.Throw("registerHost");
  if (controlled == nullptr) return NotControlled(env, "registerHost");
  HeldBytes held = args.self().Hold(args[2]);
  if (held.reference == nullptr) return args.Throw("registerHost");
  // Memory that could not be page-locked may be registered again without; other memory may be in use.
  if (const auto known = controlled->host.find(handle); known != controlled->host.end()) {
    const bool is_same =
        known->second.bytes.data() == held.bytes.data() && known->second.bytes.size() == held.bytes.size();
    args.self().Release(is_same ? known->second : held);
    if (!is_same) return args.Throw("registerHost");
  }
  controlled->host[handle] = held;
  const std::span<std::byte> bytes = controlled->pages->arena.Native(held.bytes);
  // The arena lives as long as the device, and V8 itself counts unshared memory.
  if (held.is_shared && bytes.data() == held.bytes.data()) args.self().CountShared(args[2], bytes.size());
  const Status status = controlled->channel->RegisterHost(handle, bytes, page_lock);
  return status.ok() ? nullptr : ThrowFailure(env, *controlled->channel, "registerHost", status);
}

napi_value UnregisterHost(napi_env env, napi_callback_info info) {
  Args<3> args(env, info);
  Environment::Controlled* controlled = args.Controlled(0);
  const uint32_t handle = args.Handle(1);
  const bool is_kept = args.Bool(2);
  if (!args.ok()) return args.Throw("unregisterHost");
  if (controlled == nullptr) return NotControlled(env, "unregisterHost");
  const Status status = controlled->channel->UnregisterHost(handle);
  if (!status.ok()) {
    // Kept while the device is open: a leak is better than freeing pages that the driver maps. The handle is free.
    const auto found = controlled->host.extract(handle);
    if (!found.empty()) controlled->locked.push_back(found.mapped());
    return ThrowFailure(env, *controlled->channel, "unregisterHost", status);
  }
  if (const auto held = controlled->host.find(handle); held != controlled->host.end()) {
    Environment& self = args.self();
    if (is_kept) {
      self.Release(held->second);
    } else {
      self.Discard(held->second);
    }
    controlled->host.erase(held);
  }
  return nullptr;
}

napi_value Nvrtc(napi_env env, napi_callback_info) {
  const NvrtcInfo* found = NvrtcFind();
  if (found == nullptr) return Undefined(env);
  const double version[] = {static_cast<double>(found->major), static_cast<double>(found->minor)};
  const std::vector<double> architectures(found->architectures.begin(), found->architectures.end());
  return ObjectValue(env)
      .Set("version", NumbersValue(env, version))
      .Set("path", found->path)
      .Set("architectures", NumbersValue(env, architectures))
      .value();
}

/// The result of a compiler or linker: `{ log, image }`, without the image if it was rejected, and `symbols`.
template <typename Built>
napi_value ImageValue(napi_env env, const char* call, Result<Built>& built) {
  if (!built.ok()) return ThrowStatus(env, call, built.status());
  const Built& result = built.value();
  ObjectValue value(env);
  value.Set("log", result.log);
  if (result.ok) {
    napi_value image = nullptr;
    napi_create_buffer_copy(env, result.image.size(), result.image.data(), nullptr, &image);
    value.Set("image", image);
  }
  if constexpr (requires { result.symbols; }) {
    napi_value symbols = nullptr;
    napi_create_array_with_length(env, result.symbols.size(), &symbols);
    for (uint32_t n = 0; n < result.symbols.size(); ++n) {
      napi_value symbol = nullptr;
      napi_create_string_utf8(env, result.symbols[n].data(), result.symbols[n].size(), &symbol);
      napi_set_element(env, symbols, n, symbol);
    }
    value.Set("symbols", symbols);
  }
  return value.value();
}

/// Returns whether `value` is an array of strings, and appends them.
bool ReadStrings(napi_env env, napi_value value, std::vector<std::string>* strings) {
  uint32_t count = 0;
  if (napi_get_array_length(env, value, &count) != napi_ok) return false;
  for (uint32_t n = 0; n < count; ++n) {
    napi_value item;
    size_t length = 0;
    if (napi_get_element(env, value, n, &item) != napi_ok ||
        napi_get_value_string_utf8(env, item, nullptr, 0, &length) != napi_ok) {
      return false;
    }
    std::string text(length, '\0');
    napi_get_value_string_utf8(env, item, text.data(), length + 1, &length);
    strings->push_back(std::move(text));
  }
  return true;
}

/// Takes the source, its name, the options, the headers' names, their texts, and the kernels' C++ names.
napi_value CompileNvrtc(napi_env env, napi_callback_info info) {
  Args<6> args(env, info);
  NvrtcSource source;
  source.text = args.String(0);
  source.name = args.String(1);
  std::vector<std::string> names;
  std::vector<std::string> texts;
  if (!args.ok() || !ReadStrings(env, args[2], &source.options) || !ReadStrings(env, args[3], &names) ||
      !ReadStrings(env, args[4], &texts) || !ReadStrings(env, args[5], &source.kernels) ||
      names.size() != texts.size()) {
    return args.Throw("compileNvrtc");
  }
  for (size_t n = 0; n < names.size(); ++n) source.headers.push_back({std::move(names[n]), std::move(texts[n])});
  Deliveries* const deliveries = args.self().OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "compileNvrtc", kNoFunction);
  auto compiled = std::make_shared<Result<NvrtcResult>>(Status(StatusCode::kInternal, "not compiled yet"));
  return deliveries->PromiseOff(
      env, [compiled, source = std::move(source)] { *compiled = NvrtcCompile(source); },
      [compiled] { *compiled = kNoThread; },
      [compiled](napi_env env) -> napi_value { return ImageValue(env, "compileNvrtc", *compiled); });
}

napi_value LinkDevice(napi_env env, napi_callback_info info) {
  Args<4> args(env, info);
  const uint32_t ordinal = args.U32(0);
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  std::string library = args.String(2);
  std::string architecture = args.String(3);
  if (!args.ok() || napi_get_typedarray_info(env, args[1], &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array) {
    return args.Throw("linkDevice");
  }
  // A copy, because the linking thread may outlive the buffer.
  const auto* bytes = static_cast<const std::byte*>(data);
  std::vector<std::byte> cubin(bytes, bytes + length);
  Deliveries* const deliveries = args.self().OpenDeliveries();
  if (deliveries == nullptr) return ThrowStatus(env, "linkDevice", kNoFunction);
  auto linked = std::make_shared<Result<DeviceLinkResult>>(Status(StatusCode::kInternal, "not linked yet"));
  return deliveries->PromiseOff(
      env,
      [linked, ordinal, cubin = std::move(cubin), library = std::move(library),
       architecture = std::move(architecture)] {
        *linked = LinkDeviceRuntime({ordinal, cubin, library, architecture});
      },
      [linked] { *linked = kNoThread; },
      [linked](napi_env env) -> napi_value { return ImageValue(env, "linkDevice", *linked); });
}

}  // namespace

bool DefineControl(Environment& self, napi_value exports) {
  const napi_property_descriptor functions[] = {
      self.Function("enumerate", Enumerate),           self.Function("openDevice", OpenDevice),
      self.Function("deviceInfo", DeviceInfoOf),       self.Function("closeDevice", CloseDevice),
      self.Function("destroyDevice", DestroyDevice),   self.Function("installKernel", InstallKernel),
      self.Function("failKernel", FailKernel),         self.Function("registerHost", RegisterHost),
      self.Function("unregisterHost", UnregisterHost), self.Function("nvrtc", Nvrtc),
      self.Function("ownerLeft", OwnerLeft),           self.Function("compileNvrtc", CompileNvrtc),
      self.Function("linkDevice", LinkDevice),
  };
  return napi_define_properties(self.env, exports, std::size(functions), functions) == napi_ok;
}

}  // namespace millrace
