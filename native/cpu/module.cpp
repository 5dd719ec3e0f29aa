#include "cpu/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "cpu/block_threads.h"

namespace millrace::cpu {

Result<std::shared_ptr<Image>> Image::Load(const std::string& path) {
  // Bound now: a symbol that is missing must fail the build, not the process at the first launch. Local: two images may
  // export the same entry.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(StatusCode::kInternal, "loading the shared object of a kernel");
  return std::make_shared<Image>(library);
}

Image::~Image() {
  dlclose(library_);
}

void* Image::Find(const std::string& symbol) const {
  return dlsym(library_, symbol.c_str());
}

Result<std::shared_ptr<hal::Kernel>> CpuKernel::Load(const hal::KernelRequest& request, const hal::DeviceInfo& device) {
  const std::string path(reinterpret_cast<const char*>(request.image.data()), request.image.size());
  Result<std::shared_ptr<Image>> image = Image::Load(path);
  if (!image.ok()) return image.status();

  auto function = reinterpret_cast<EntryFunction>(image.value()->Find("mr_entry_" + request.entry));
  if (function == nullptr) return Status(StatusCode::kInternal, "finding a kernel's entry in its shared object");
  const auto* table = static_cast<const unsigned*>(image.value()->Find("mr_params_" + request.entry));
  if (table == nullptr) return Status(StatusCode::kInternal, "finding a kernel's parameter sizes in its shared object");

  std::vector<uint32_t> param_bytes(table + 1, table + 1 + table[0]);
  for (uint32_t bytes : param_bytes) {
    if (bytes == 0 || bytes > kMaxParamBytes) {
      return Status(StatusCode::kUnsupported, "passing a kernel parameter of more than 8 bytes");
    }
  }
  hal::KernelLimits limits{.max_threads_per_block = device.max_threads_per_block,
                           .max_dynamic_shared_bytes = device.max_shared_bytes,
                           .max_blocks_together = kMostBlocksTogether};
  if (const void* bound = image.value()->Find("mr_max_threads_" + request.entry); bound != nullptr) {
    limits.max_threads_per_block = std::min(limits.max_threads_per_block, *static_cast<const unsigned*>(bound));
  }
  return std::shared_ptr<hal::Kernel>(std::make_shared<CpuKernel>(std::move(image.value()), function,
                                                                  std::move(param_bytes), request.is_bounded, limits));
}

}  // namespace millrace::cpu
