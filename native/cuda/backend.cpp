#include "cuda/backend.h"

#include <cstdlib>

#include <mutex>

#include "cuda/context.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/driver_errors.h"
#include "cuda/ending_devices.h"

namespace millrace {

namespace cuda {
namespace {

/// CUDA 12.1 raised the limit of a kernel's parameters, from Volta on.
constexpr int kLargeParametersVersion = 12010;
constexpr uint32_t kLargeParametersMajor = 7;
constexpr uint32_t kSmallParameterBytes = 4096;

/// Reads a device's properties without a context. The priority range needs a context and is read when the device opens.
Result<hal::DeviceInfo> Describe(uint32_t ordinal) {
  CUdevice device = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceGet(&device, static_cast<int>(ordinal)), "finding the device"));
  hal::DeviceInfo info;
  info.ordinal = ordinal;

  char name[256] = {};
  MR_TRY(FromDriver(Cuda().cuDeviceGetName(name, sizeof(name) - 1, device), "reading the device's name"));
  info.name = name;
  size_t bytes = 0;
  MR_TRY(FromDriver(Cuda().cuDeviceTotalMem(&bytes, device), "reading the device's memory"));
  info.total_memory_bytes = bytes;

  const struct {
    CUdevice_attribute attribute;
    uint32_t* value;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &info.compute_major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &info.compute_minor},
#define MR_ROW(member, name, attribute, on_cpu) {attribute, &info.member},
      MR_DEVICE_PROPERTIES(MR_ROW)
#undef MR_ROW
          {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &info.max_block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &info.max_block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &info.max_block[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &info.max_grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &info.max_grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &info.max_grid[2]},
  };
  for (const auto& row : rows) {
    int value = 0;
    MR_TRY(FromDriver(Cuda().cuDeviceGetAttribute(&value, row.attribute, device), "reading the device's limits"));
    *row.value = static_cast<uint32_t>(value);
  }
  constexpr CUdevice_attribute kTextureLimits[] = {
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH,         CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH,         CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
  };
  for (size_t n = 0; n < std::size(kTextureLimits); ++n) {
    int value = 0;
    MR_TRY(FromDriver(Cuda().cuDeviceGetAttribute(&value, kTextureLimits[n], device), "reading the device's limits"));
    info.texture_limits[n] = static_cast<uint32_t>(value);
  }
  const bool is_large = LoadDriver().version >= kLargeParametersVersion && info.compute_major >= kLargeParametersMajor;
  info.max_parameter_bytes = is_large ? protocol::kMaxParameterBytes : kSmallParameterBytes;
  return info;
}

class Backend final : public hal::Backend {
 public:
  [[nodiscard]] const char* name() const override { return "cuda"; }

  [[nodiscard]] hal::BackendReport Enumerate() override {
    const std::lock_guard lock(mutex_);
    if (report_.devices.empty()) report_ = Look();
    return report_;
  }

  void LeaveContext() const override {
    CUcontext popped = nullptr;
    std::ignore = Cuda().cuCtxPopCurrent(&popped);
  }

  [[nodiscard]] Result<std::unique_ptr<hal::Device>> Open(uint32_t ordinal,
                                                          std::span<protocol::TimelineSlot> timeline) override {
    const hal::BackendReport report = Enumerate();
    if (ordinal >= report.devices.size()) return Status(StatusCode::kUnavailable, "finding the device");
    if (const int32_t code = Context::LostCode(ordinal).load(std::memory_order_acquire); code != 0) {
      return Status(StatusCode::kDeviceLost, "opening a device that this process lost", code);
    }
    if (EndingDevices::HasHung(ordinal)) {
      return Status(StatusCode::kDeviceLost, "a kernel of a destroyed device of this process still runs on the GPU");
    }
    return Device::Open(report.devices[ordinal], timeline);
  }

 private:
  static hal::BackendReport Look() {
    hal::BackendReport report;
    report.name = "cuda";
    const DriverReport driver = LoadDriver();
    if (driver.version != 0) report.driver_version = DriverVersionText(driver.version);
    if (!driver.is_loaded) {
      report.reason = driver.reason;
      report.help = driver.help;
      return report;
    }

    int count = 0;
    Status status = FromDriver(Cuda().cuDeviceGetCount(&count), "counting devices");
    for (uint32_t ordinal = 0; status.ok() && ordinal < static_cast<uint32_t>(count) && ordinal < kMaxDevices;
         ++ordinal) {
      Result<hal::DeviceInfo> info = Describe(ordinal);
      status = info.status();
      if (info.ok()) report.devices.push_back(std::move(info).value());
    }
    if (!status.ok()) {
      report.devices.clear();
      report.reason = std::string("The CUDA driver failed at ") + status.note() + " (driver error " +
                      std::to_string(status.driver_code()) + ").";
      report.help = {"Check that nvidia-smi works on this machine."};
    } else if (report.devices.empty()) {
      report.reason = "The CUDA driver finds no device.";
      report.help = {"Check that nvidia-smi lists a GPU, and that CUDA_VISIBLE_DEVICES does not hide it."};
    }
    return report;
  }

  std::mutex mutex_;
  hal::BackendReport report_;  // Guarded by mutex_. Once there are devices, their set is fixed within a process.
};

}  // namespace
}  // namespace cuda

std::unique_ptr<hal::Backend> MakeCudaBackend() {
  // The driver reads these variables once, in cuInit, and the user's own values win. They are set here, before this
  // library starts threads, because setenv is not safe while another thread reads the environment. A module that loads
  // lazily at its first launch takes a lock, which may block its stream behind another.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  // Streams share this many hardware queues, and a waiting stream blocks the others of its queue. The driver's default
  // is 8; this is the maximum.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  return std::make_unique<cuda::Backend>();
}

}  // namespace millrace
