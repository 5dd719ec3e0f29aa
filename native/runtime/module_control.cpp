// Kernels, modules and their variables, which the control thread loads while the channel goes on issuing.

#include <utility>

#include "runtime/device_control.h"

namespace millrace {
namespace {

Status NoModule() {
  return Status(StatusCode::kState, "the module is not loaded");
}

}  // namespace

Result<hal::KernelLimits> DeviceControl::InstallKernel(uint32_t handle, const KernelInstall& install) {
  const auto& [request, is_checked, module] = install;
  auto kernel = device_.With([&](hal::Device& device) {
    if (!module) return device.LoadKernel(request);
    const auto loaded = tables_.modules.find(*module);
    if (loaded == tables_.modules.end()) return Result<std::shared_ptr<hal::Kernel>>(NoModule());
    return loaded->second->FindKernel(request.entry, request.is_bounded, request.is_launching);
  });
  if (!kernel.ok()) return kernel.status();
  const hal::KernelLimits limits = kernel.value()->limits();
  inbox_.Post([this, handle, loaded = std::move(kernel).value(), is_checked = install.is_checked] {
    if (tables_.kernels.IsOver(handle)) return;
    tables_.kernels.Bind(handle, {.kernel = loaded, .is_checked = is_checked});
  });
  return limits;
}

void DeviceControl::FailKernel(uint32_t handle, Status why) {
  inbox_.Post([this, handle, why] {
    // The owner may already have given the index to another kernel, and a launch of that may have arrived first.
    if (!tables_.kernels.IsOver(handle)) tables_.kernels.Bind(handle, {.failure = why});
  });
}

Status DeviceControl::LoadModule(uint32_t module, std::span<const std::byte> image) {
  return device_.With([&](hal::Device& device) -> Status {
    auto loaded = device.LoadModule(image);
    if (loaded.ok()) tables_.modules[module] = std::move(loaded).value();
    return loaded.status();
  });
}

Result<uint64_t> DeviceControl::BindVariable(uint32_t handle, uint32_t module, const std::string& name,
                                             uint64_t bytes) {
  auto found = device_.With([&](hal::Device&) -> Result<std::unique_ptr<hal::Memory>> {
    const auto loaded = tables_.modules.find(module);
    if (loaded == tables_.modules.end()) return NoModule();
    return loaded->second->FindVariable(name);
  });
  if (!found.ok()) return found.status();
  if (found.value()->bytes() != bytes) return found.value()->bytes();
  // Not counted as live: nobody allocated it, and nobody can free it.
  auto entry = std::make_shared<MemoryEntry>();
  entry->memory = std::move(found).value();
  entry->address = entry->memory->address();
  entry->bytes = bytes;
  BindLater(handle, std::move(entry));
  return bytes;
}

void DeviceControl::FailVariable(uint32_t handle, uint64_t bytes, uint32_t failure) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = bytes;
  entry->poison.Set(failure);
  BindLater(handle, std::move(entry));
}

void DeviceControl::BindLater(uint32_t handle, MemoryRef entry) {
  inbox_.Post([this, handle, entry = std::move(entry)]() mutable {
    if (tables_.memory.Find(handle) == nullptr) tables_.memory.Bind(handle, std::move(entry));
  });
}

}  // namespace millrace
