#include "cuda/nvml.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "cuda/driver.h"
#include "cuda/driver_errors.h"
#include "cuda/nvml_types.h"

namespace millrace::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// XID errors of a GPU that are kept.
constexpr size_t kMostXids = 16;

struct NvmlTable {
#define MR_NVML(name, params) NvmlCode(*name) params = nullptr;
#include "cuda/nvml_functions.def"
#undef MR_NVML
};

/// Calls a function that this library may lack.
template <typename... Params, typename... Given>
NvmlCode Call(NvmlCode (*function)(Params...), Given... given) {
  return function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(given...);
}

/// Empty, or why it cannot be used. Tried again at each call until it works.
Status OpenNvml(NvmlTable& table) {
  const char* chosen = std::getenv("MILLRACE_NVML");
  const bool is_chosen = chosen != nullptr && *chosen != '\0';
  // Never closed: another part of the process may use it.
  void* library = dlopen(is_chosen ? chosen : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {StatusCode::kUnavailable, "NVML (libnvidia-ml.so.1) cannot be opened"};
  NvmlTable found;
#define MR_NVML(name, params) found.name = reinterpret_cast<NvmlCode(*) params>(dlsym(library, #name));
#include "cuda/nvml_functions.def"
#undef MR_NVML
  const bool is_usable = found.nvmlInit_v2 != nullptr && found.nvmlDeviceGetCount_v2 != nullptr &&
                         found.nvmlDeviceGetHandleByIndex_v2 != nullptr && found.nvmlDeviceGetHandleByUUID != nullptr &&
                         found.nvmlDeviceGetUUID != nullptr;
  if (!is_usable) return {StatusCode::kUnavailable, "NVML lacks functions that are needed"};
  if (const NvmlCode code = found.nvmlInit_v2(); code != NVML_SUCCESS) {
    return {StatusCode::kUnavailable, "NVML does not start", code};
  }
  table = found;
  return {};
}

/// The XID errors of one GPU. NVML tells each error once to each set, so all callers of the process share one.
struct Watched {
  NvmlEventSet set = nullptr;
  std::deque<std::pair<uint64_t, Clock::time_point>> xids;
};

/// Everything of NVML that outlives a call. The mutex guards all of it: a call of another thread waits for
/// milliseconds.
struct Nvml {
  std::mutex mutex;
  NvmlTable table;
  bool is_open = false;
  std::map<NvmlDevice, Watched> watched;

  Status Open() {
    if (is_open) return {};
    MR_TRY(OpenNvml(table));
    is_open = true;
    return {};
  }

  /// Of a GPU, not of a slice: NVML reports no events of these.
  std::vector<XidError> Xids(NvmlDevice gpu) {
    auto [entry, is_new] = watched.try_emplace(gpu);
    Watched& its = entry->second;
    if (is_new && Call(table.nvmlEventSetCreate, &its.set) == NVML_SUCCESS &&
        Call(table.nvmlDeviceRegisterEvents, gpu, kNvmlXidEvents, its.set) != NVML_SUCCESS) {
      Call(table.nvmlEventSetFree, its.set);
      its.set = nullptr;
    }
    const Clock::time_point now = Clock::now();
    NvmlEvent event = {};
    // It does not wait. A GPU that reports without end does not hold up the caller.
    for (size_t n = 0; its.set != nullptr && n < kMostXids; ++n) {
      if (Call(table.nvmlEventSetWait_v2, its.set, &event, 0u) != NVML_SUCCESS) break;
      if ((event.eventType & kNvmlXidEvents) == 0) continue;
      its.xids.emplace_back(event.eventData, now);
      if (its.xids.size() > kMostXids) its.xids.pop_front();
    }
    std::vector<XidError> xids;
    for (const auto& [code, at] : its.xids) {
      xids.push_back({code, std::chrono::duration<double, std::milli>(now - at).count()});
    }
    return xids;
  }

  GpuTelemetry Read(NvmlDevice device) {
    GpuTelemetry read;
    char text[kNvmlTextBytes] = {};
    if (Call(table.nvmlDeviceGetUUID, device, text, kNvmlTextBytes) == NVML_SUCCESS) read.uuid = text;
    if (Call(table.nvmlDeviceGetName, device, text, kNvmlTextBytes) == NVML_SUCCESS) read.name = text;
    unsigned int is_slice = 0;
    NvmlDevice gpu = device;
    if (Call(table.nvmlDeviceIsMigDeviceHandle, device, &is_slice) == NVML_SUCCESS && is_slice != 0) {
      read.is_slice = true;
      // Without the right to see the GPU, the calls below fail, and their values stay away.
      if (Call(table.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device, &gpu) != NVML_SUCCESS) gpu = device;
    }
    NvmlMemory memory = {.version = kNvmlMemoryVersion, .total = 0, .reserved = 0, .free = 0, .used = 0};
    if (Call(table.nvmlDeviceGetMemoryInfo_v2, device, &memory) == NVML_SUCCESS) {
      read.memory_total_bytes = static_cast<double>(memory.total);
      read.memory_used_bytes = static_cast<double>(memory.used);
    }
    // Of the GPU it would count the work of other slices, so of a slice there is none.
    NvmlUtilization utilization = {};
    if (Call(table.nvmlDeviceGetUtilizationRates, device, &utilization) == NVML_SUCCESS) {
      read.busy_percent = utilization.gpu;
      read.memory_busy_percent = utilization.memory;
    }
    const auto value = [&](auto call, double unit = 1) -> std::optional<double> {
      unsigned int found = 0;
      return call(&found) == NVML_SUCCESS ? std::optional(found * unit) : std::nullopt;
    };
    const auto clock = [&](NvmlClock which) {
      return value([&](unsigned int* mhz) { return Call(table.nvmlDeviceGetClockInfo, gpu, which, mhz); });
    };
    read.graphics_mhz = clock(NVML_CLOCK_GRAPHICS);
    read.sm_mhz = clock(NVML_CLOCK_SM);
    read.memory_mhz = clock(NVML_CLOCK_MEM);
    read.temperature_c = value(
        [&](unsigned int* found) { return Call(table.nvmlDeviceGetTemperature, gpu, NVML_TEMPERATURE_GPU, found); });
    constexpr double kWatts = 1e-3;
    read.power_w = value([&](unsigned int* found) { return Call(table.nvmlDeviceGetPowerUsage, gpu, found); }, kWatts);
    read.power_limit_w =
        value([&](unsigned int* found) { return Call(table.nvmlDeviceGetEnforcedPowerLimit, gpu, found); }, kWatts);
    unsigned long long reasons = 0;
    if (Call(table.nvmlDeviceGetCurrentClocksThrottleReasons, gpu, &reasons) == NVML_SUCCESS) {
      read.throttle_reasons = static_cast<double>(reasons);
    }
    read.xids = Xids(gpu);
    return read;
  }
};

Nvml& TheNvml() {
  static auto* nvml = new Nvml();  // Threads may use it while the process ends.
  return *nvml;
}

/// As NVML writes it, for the prefix "GPU-" or "MIG-".
std::string UuidText(const char* prefix, const CUuuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = prefix;
  for (size_t n = 0; n < sizeof(uuid.bytes); ++n) {
    if (n == 4 || n == 6 || n == 8 || n == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[n]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Result<GpuTelemetry> TelemetryOf(uint32_t ordinal) {
  CUdevice device = 0;
  CUuuid uuid = {};
  MR_TRY(FromDriver(Cuda().cuDeviceGet(&device, static_cast<int>(ordinal)), "finding the device"));
  if (Cuda().cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS) {
    return Status(StatusCode::kUnsupported, "the driver does not name the GPU");
  }
  Nvml& nvml = TheNvml();
  const std::lock_guard lock(nvml.mutex);
  MR_TRY(nvml.Open());
  NvmlDevice found = nullptr;
  // A slice has a name of its own.
  for (const char* prefix : {"GPU-", "MIG-"}) {
    if (nvml.table.nvmlDeviceGetHandleByUUID(UuidText(prefix, uuid).c_str(), &found) == NVML_SUCCESS) {
      return nvml.Read(found);
    }
  }
  return Status(StatusCode::kUnsupported, "NVML does not know the GPU");
}

Result<std::vector<GpuTelemetry>> TelemetryOfAll() {
  Nvml& nvml = TheNvml();
  const std::lock_guard lock(nvml.mutex);
  MR_TRY(nvml.Open());
  std::vector<GpuTelemetry> all;
  unsigned int count = 0;
  Call(nvml.table.nvmlDeviceGetCount_v2, &count);
  for (unsigned int n = 0; n < count; ++n) {
    NvmlDevice gpu = nullptr;
    if (nvml.table.nvmlDeviceGetHandleByIndex_v2(n, &gpu) != NVML_SUCCESS) continue;
    all.push_back(nvml.Read(gpu));
    unsigned int most = 0;
    if (Call(nvml.table.nvmlDeviceGetMaxMigDeviceCount, gpu, &most) != NVML_SUCCESS) continue;
    for (unsigned int k = 0; k < most; ++k) {
      NvmlDevice slice = nullptr;
      if (Call(nvml.table.nvmlDeviceGetMigDeviceHandleByIndex, gpu, k, &slice) == NVML_SUCCESS) {
        all.push_back(nvml.Read(slice));
      }
    }
  }
  return all;
}

}  // namespace millrace::cuda
