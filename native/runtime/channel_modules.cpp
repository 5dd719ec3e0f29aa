// Kernels, modules and their variables, which the control thread loads while the channel goes on issuing.

#include <utility>

#include "runtime/channel.h"

namespace millrace {
namespace {

Status NoModule() {
  return Status(StatusCode::kState, "the module is not loaded");
}

}  // namespace

Result<hal::KernelLimits> Channel::InstallKernel(uint32_t handle, const KernelInstall& install) {
  const auto& [request, is_checked, module] = install;
  auto kernel = WithDevice([&](hal::Device& device) {
    if (!module) return device.LoadKernel(request);
    const auto loaded = modules_.find(*module);
    if (loaded == modules_.end()) return Result<std::shared_ptr<hal::Kernel>>(NoModule());
    return loaded->second->FindKernel(request.entry, request.is_bounded, request.is_launching);
  });
  if (!kernel.ok()) return kernel.status();
  const hal::KernelLimits limits = kernel.value()->limits();
  Post([this, handle, loaded = std::move(kernel).value(), is_checked = install.is_checked] {
    if (kernels_.IsOver(handle)) return;
    KernelEntry& entry = kernels_.FindOrBind(handle);
    entry.state = ResourceState::kReady;
    entry.kernel = loaded;
    entry.is_checked = is_checked;
    for (const uint32_t stream : std::exchange(entry.parked, {})) WakeStream(stream);
  });
  return limits;
}

void Channel::FailKernel(uint32_t handle, Status why) {
  Post([this, handle, why] {
    // The owner may already have given the index to another kernel, and a launch of that may have arrived first.
    if (kernels_.IsOver(handle)) return;
    KernelEntry& entry = kernels_.FindOrBind(handle);
    entry.state = ResourceState::kFailed;
    entry.failure = why;
    for (const uint32_t stream : std::exchange(entry.parked, {})) WakeStream(stream);
  });
}

Status Channel::LoadModule(uint32_t module, std::span<const std::byte> image) {
  return WithDevice([&](hal::Device& device) -> Status {
    auto loaded = device.LoadModule(image);
    if (loaded.ok()) modules_[module] = std::move(loaded).value();
    return loaded.status();
  });
}

Result<uint64_t> Channel::BindVariable(uint32_t handle, uint32_t module, const std::string& name, uint64_t bytes) {
  auto found = WithDevice([&](hal::Device&) -> Result<std::unique_ptr<hal::Memory>> {
    const auto loaded = modules_.find(module);
    if (loaded == modules_.end()) return NoModule();
    return loaded->second->FindVariable(name);
  });
  if (!found.ok()) return found.status();
  if (found.value()->bytes() != bytes) return found.value()->bytes();
  // Not counted as live: nobody allocated it, and nobody can free it.
  auto entry = std::make_shared<MemoryEntry>();
  entry->memory = std::move(found).value();
  entry->address = entry->memory->address();
  entry->bytes = bytes;
  Post([this, handle, entry = std::move(entry)]() mutable {
    // What is there already may be in use.
    if (memory_.Find(handle) == nullptr) memory_.Bind(handle, std::move(entry));
  });
  return bytes;
}

void Channel::FailVariable(uint32_t handle, uint64_t bytes, uint32_t failure) {
  auto entry = std::make_shared<MemoryEntry>();
  entry->bytes = bytes;
  entry->poison.Set(failure);
  Post([this, handle, entry = std::move(entry)]() mutable {
    // What is there already may be in use.
    if (memory_.Find(handle) == nullptr) memory_.Bind(handle, std::move(entry));
  });
}

}  // namespace millrace
