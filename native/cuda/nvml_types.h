// NVML's own declarations, as far as they are used: those of nvml.h since driver 515.
#pragma once

#include <cstdint>

namespace millrace::cuda {

using NvmlDevice = struct nvmlDevice_st*;
using NvmlEventSet = struct nvmlEventSet_st*;

enum NvmlCode : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
};
enum NvmlClock : int { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum NvmlSensor : int { NVML_TEMPERATURE_GPU = 0 };

struct NvmlMemory {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlUtilization {
  unsigned int gpu;
  unsigned int memory;
};
struct NvmlEvent {
  NvmlDevice device;
  unsigned long long eventType;
  unsigned long long eventData;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

inline constexpr unsigned int kNvmlMemoryVersion = static_cast<unsigned int>(sizeof(NvmlMemory)) | 2u << 24;
inline constexpr unsigned long long kNvmlXidEvents = 8;
inline constexpr unsigned int kNvmlTextBytes = 96;

}  // namespace millrace::cuda
