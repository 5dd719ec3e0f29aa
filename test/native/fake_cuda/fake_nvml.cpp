// An NVML for machines without one, selected by MILLRACE_NVML. Its GPUs are those of the fake driver, each with values
// of its own.
//
//   MILLRACE_FAKE_CUDA_DEVICES   as for the driver (2)
//   MILLRACE_FAKE_NVML           read at each call. "init:9": nvmlInit_v2 returns 9. "mig": GPU 0 has two slices, and
//   the
//                                driver's device 0 is the first. "unknown": no GPU is found by its UUID. "old": only
//                                memory is told.
//   MILLRACE_FAKE_NVML_XIDS      a file with a line for each XID error, "ordinal code"; lines may be added
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/nvml_types.h"

namespace millrace::cuda {

struct nvmlDevice_st {
  unsigned int ordinal = 0;
  bool is_slice = false;
  std::string uuid;
};
struct nvmlEventSet_st {
  std::vector<NvmlDevice> devices;
  size_t lines = 0;  // Of the file, that were told or came too early.
};

namespace {

std::mutex fake_mutex;

std::string Text(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool Is(const char* mode) {
  return Text("MILLRACE_FAKE_NVML") == mode;
}

std::string Uuid(const char* prefix, unsigned int last) {
  char text[kNvmlTextBytes];
  std::snprintf(text, sizeof(text), "%s-00000000-0000-0000-0000-0000000000%02x", prefix, last);
  return text;
}

struct Machine {
  std::vector<nvmlDevice_st> gpus;
  std::vector<nvmlDevice_st> slices;  // Of GPU 0.
};

Machine& TheMachine() {
  static auto* machine = [] {
    auto* made = new Machine();
    const std::string asked = Text("MILLRACE_FAKE_CUDA_DEVICES");
    const unsigned int count = asked.empty() ? 2 : static_cast<unsigned int>(std::atoi(asked.c_str()));
    for (unsigned int n = 0; n < count; ++n) made->gpus.push_back({n, false, Uuid("GPU", n + 1)});
    for (unsigned int n = 0; n < 2; ++n) made->slices.push_back({0, true, Uuid("MIG", n + 1)});
    return made;
  }();
  return *machine;
}

/// The errors of the file, from a line on.
std::vector<std::pair<unsigned int, unsigned long long>> Errors() {
  std::vector<std::pair<unsigned int, unsigned long long>> errors;
  std::ifstream file(Text("MILLRACE_FAKE_NVML_XIDS"));
  unsigned int ordinal = 0;
  unsigned long long code = 0;
  while (file >> ordinal >> code) errors.emplace_back(ordinal, code);
  return errors;
}

NvmlCode Give(unsigned int* to, unsigned int value) {
  if (Is("old")) return NVML_ERROR_NOT_SUPPORTED;
  *to = value;
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

#define MR_NVML(name, params) __attribute__((visibility("default"))) NvmlCode name params;
#include "cuda/nvml_functions.def"
#undef MR_NVML

NvmlCode nvmlInit_v2() {
  const std::string mode = Text("MILLRACE_FAKE_NVML");
  return mode.starts_with("init:") ? static_cast<NvmlCode>(std::atoi(mode.c_str() + 5)) : NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = static_cast<unsigned int>(TheMachine().gpus.size());
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetHandleByIndex_v2(unsigned int index, NvmlDevice* device) {
  if (index >= TheMachine().gpus.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &TheMachine().gpus[index];
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  for (auto* list : {&TheMachine().gpus, &TheMachine().slices}) {
    for (nvmlDevice_st& known : *list) {
      const bool is_seen = Is("mig") ? known.is_slice || known.ordinal != 0 : !known.is_slice;
      if (known.uuid != uuid || !is_seen || Is("unknown")) continue;
      *device = &known;
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

NvmlCode nvmlDeviceGetName(NvmlDevice device, char* name, unsigned int length) {
  std::snprintf(name, length, "Fake device %u%s", device->ordinal, device->is_slice ? " MIG 1g.5gb" : "");
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned int length) {
  std::snprintf(uuid, length, "%s", device->uuid.c_str());
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemory* memory) {
  if (memory->version != kNvmlMemoryVersion) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = (device->is_slice ? 1ull : 8ull) << 30;
  memory->reserved = 1 << 20;
  memory->used = (device->ordinal + 1ull) << 28;
  memory->free = memory->total - memory->reserved - memory->used;
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization* utilization) {
  if (device->is_slice || Is("old")) return NVML_ERROR_NOT_SUPPORTED;
  *utilization = {40 + device->ordinal, 20 + device->ordinal};
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetClockInfo(NvmlDevice device, NvmlClock clock, unsigned int* mhz) {
  if (device->is_slice) return NVML_ERROR_NOT_SUPPORTED;
  return Give(mhz, 1000 + 100 * static_cast<unsigned int>(clock) + device->ordinal);
}

NvmlCode nvmlDeviceGetTemperature(NvmlDevice device, NvmlSensor sensor, unsigned int* celsius) {
  if (device->is_slice || sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_NOT_SUPPORTED;
  return Give(celsius, 50 + device->ordinal);
}

NvmlCode nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned int* milliwatts) {
  return device->is_slice ? NVML_ERROR_NOT_SUPPORTED : Give(milliwatts, 123'500 + device->ordinal);
}

NvmlCode nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device, unsigned int* milliwatts) {
  return device->is_slice ? NVML_ERROR_NOT_SUPPORTED : Give(milliwatts, 700'000);
}

NvmlCode nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device, unsigned long long* reasons) {
  if (device->is_slice || Is("old")) return NVML_ERROR_NOT_SUPPORTED;
  // The cap of the power, the temperature, and a reason that nobody knows yet.
  *reasons = device->ordinal == 0 ? 0x4 | 0x20 | 0x100000 : 0;
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceIsMigDeviceHandle(NvmlDevice device, unsigned int* is_slice) {
  *is_slice = device->is_slice ? 1 : 0;
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvmlDevice slice, NvmlDevice* gpu) {
  if (!slice->is_slice) return NVML_ERROR_INVALID_ARGUMENT;
  *gpu = &TheMachine().gpus[0];
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetMaxMigDeviceCount(NvmlDevice device, unsigned int* count) {
  *count = Is("mig") && device->ordinal == 0 ? static_cast<unsigned int>(TheMachine().slices.size()) : 0;
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice device, unsigned int index, NvmlDevice* slice) {
  if (device->ordinal != 0 || index >= TheMachine().slices.size()) return NVML_ERROR_NOT_FOUND;
  *slice = &TheMachine().slices[index];
  return NVML_SUCCESS;
}

NvmlCode nvmlEventSetCreate(NvmlEventSet* set) {
  *set = new nvmlEventSet_st();
  return NVML_SUCCESS;
}

NvmlCode nvmlEventSetFree(NvmlEventSet set) {
  delete set;
  return NVML_SUCCESS;
}

NvmlCode nvmlDeviceRegisterEvents(NvmlDevice device, unsigned long long types, NvmlEventSet set) {
  if (Is("old") || device->is_slice || types != kNvmlXidEvents) return NVML_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(fake_mutex);
  set->devices.push_back(device);
  set->lines = Errors().size();
  return NVML_SUCCESS;
}

NvmlCode nvmlEventSetWait_v2(NvmlEventSet set, NvmlEvent* event, unsigned int) {
  const std::lock_guard lock(fake_mutex);
  const auto errors = Errors();
  while (set->lines < errors.size()) {
    const auto [ordinal, code] = errors[set->lines++];
    for (const NvmlDevice device : set->devices) {
      if (device->ordinal != ordinal) continue;
      *event = {device, kNvmlXidEvents, code, 0xffffffffu, 0xffffffffu};
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_TIMEOUT;
}

}  // extern "C"

}  // namespace millrace::cuda
