#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

namespace millrace::cuda {

namespace {

template <typename Function>
struct Missing;

/// A function that replaces one missing from this driver, with the same signature.
template <typename... Params>
struct Missing<CUresult (*)(Params...)> {
  static CUresult Call(Params...) { return CUDA_ERROR_NOT_FOUND; }
};

}  // namespace

constinit DriverTable internal::driver_table = {
#define MR_DRIVER(name, version, presence, params) .name = &Missing<CUresult(*) params>::Call,
#include "cuda/driver_functions.def"
#undef MR_DRIVER
};

namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, uint64_t, CUdriverProcAddressQueryResult*);

enum class Presence { kRequired, kOptional };

struct Row {
  const char* name;
  int version;
  Presence presence;
  void (*store)(void* function);
};

constexpr Row kRows[] = {
#define MR_DRIVER(name, version, presence, params) \
  {#name, version, Presence::presence,             \
   [](void* function) { internal::driver_table.name = reinterpret_cast<CUresult(*) params>(function); }},
#include "cuda/driver_functions.def"
#undef MR_DRIVER
};

DriverReport Refuse(int version, std::string reason, std::vector<std::string> help) {
  help.push_back("The CPU device needs no driver: openDevice('cpu').");
  return {false, version, std::move(reason), std::move(help)};
}

DriverReport RefuseTooOld(int version) {
  return Refuse(version,
                "The CUDA driver (" + DriverVersionText(version) + ") is older than the oldest supported (" +
                    DriverVersionText(kOldestDriver) + ").",
                {"Update the NVIDIA driver to version 525 or newer."});
}

/// Translates cuInit's error. A machine without a device is not defective, but CUDA cannot be used on it.
DriverReport RefuseInit(int version, CUresult code) {
  const std::string number = " (driver error " + std::to_string(code) + ").";
  switch (code) {
    case CUDA_ERROR_NO_DEVICE:
      return Refuse(version, "The CUDA driver finds no device" + number,
                    {"Check that nvidia-smi lists a GPU, and that CUDA_VISIBLE_DEVICES does not hide it."});
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return Refuse(version, "The CUDA driver's library and its kernel module have different versions" + number,
                    {"Restart the machine, or reload the NVIDIA kernel module, after updating the driver."});
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return Refuse(version, "The system is not ready for CUDA" + number,
                    {"Check that the NVIDIA services (nvidia-fabricmanager on systems with NVSwitch) are running."});
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return Refuse(version, "The CUDA forward compatibility library does not support this GPU" + number,
                    {"Remove the compatibility library from the library path, or update the driver."});
    case CUDA_ERROR_STUB_LIBRARY:
      return Refuse(version, "The CUDA driver library found is the toolkit's stub" + number,
                    {"Remove the toolkit's lib64/stubs folder from LD_LIBRARY_PATH."});
    default:
      return Refuse(version, "The CUDA driver does not start" + number,
                    {"Check that nvidia-smi works on this machine."});
  }
}

DriverReport Load() {
  const char* chosen = std::getenv("MILLRACE_CUDA_DRIVER");
  const bool is_chosen = chosen != nullptr && chosen[0] != '\0';
  // Never closed, because the driver's threads outlive its users.
  void* library = dlopen(is_chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Refuse(
        0, std::string("The CUDA driver could not be opened (") + (why != nullptr ? why : "unknown") + ").",
        {is_chosen ? "Check the path in MILLRACE_CUDA_DRIVER." : "Install the NVIDIA driver, version 525 or newer.",
         "In a container, start it with access to the GPU (docker run --gpus all)."});
  }

  auto get_version = reinterpret_cast<CUresult (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != CUDA_SUCCESS) {
    return Refuse(0, "The CUDA driver does not report its version.", {"Reinstall the NVIDIA driver."});
  }
  // The first supported driver introduced the _v2 name.
  auto get_address = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (version < kOldestDriver || get_address == nullptr) return RefuseTooOld(version);

  for (const Row& row : kRows) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult code = get_address(row.name, &function, row.version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    if (code == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && function != nullptr) {
      row.store(function);
    } else if (row.presence == Presence::kRequired) {
      return Refuse(version, std::string("The CUDA driver lacks the function ") + row.name + ".",
                    {"Reinstall the NVIDIA driver."});
    }
  }

  if (const CUresult code = Cuda().cuInit(0); code != CUDA_SUCCESS) return RefuseInit(version, code);
  return {true, version, "", {}};
}

}  // namespace

DriverReport LoadDriver() {
  static std::mutex mutex;
  static DriverReport report;
  std::lock_guard lock(mutex);
  if (!report.is_loaded) report = Load();
  return report;
}

std::string DriverVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace millrace::cuda
