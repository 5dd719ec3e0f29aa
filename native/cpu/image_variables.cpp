#include "cpu/image_variables.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "cpu/address_space.h"
#include "cpu/shim/launch_abi.h"

namespace millrace::cpu {
namespace {

constexpr uint64_t kLeastAlignment = 64;

std::mutex images_mutex;
uint64_t image_count = 0;                                     // Guarded by images_mutex.
std::map<uint64_t, uint64_t> areas;                           // First and end of each. Guarded by images_mutex.
std::map<void*, std::weak_ptr<ImageVariables>> of_libraries;  // Guarded by images_mutex.

/// The first gap. False if there is none.
bool Reserve(uint64_t bytes, uint64_t alignment, uint64_t* first) {
  // The thread's memory has something of its own in front.
  *first = alignment;
  for (const auto& [begin, end] : areas) {
    if (*first + bytes <= begin) break;
    *first = RoundUp(end, alignment);
  }
  if (*first + bytes > kMostVariableBytes) return false;
  areas[*first] = *first + bytes;
  return true;
}

const ElfW(Phdr) * FindSegment(const std::byte* base) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* first = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  return std::find_if(first, first + header->e_phnum, [](const ElfW(Phdr) & one) { return one.p_type == PT_TLS; });
}

}  // namespace

Result<std::shared_ptr<ImageVariables>> ImageVariables::Of(void* library) {
  auto* const place = static_cast<MrPlace*>(dlsym(library, "mr_place"));
  if (place == nullptr) return std::shared_ptr<ImageVariables>();
  std::lock_guard lock(images_mutex);
  if (const auto known = of_libraries.find(library); known != of_libraries.end()) {
    if (std::shared_ptr<ImageVariables> shared = known->second.lock()) return shared;
  }
  unsigned long long before = 0;
  if (!std::atomic_ref(place->mask).compare_exchange_strong(before, ~(kKernelMemorySpan - 1))) {
    return Status(StatusCode::kState, "another copy of this library has loaded the image");
  }
  Dl_info info{};
  if (dladdr(place, &info) == 0) return Status(StatusCode::kInternal, "finding where an image is loaded");
  const auto* const base = static_cast<const std::byte*>(info.dli_fbase);
  const ElfW(Phdr)& segment = *FindSegment(base);
  std::shared_ptr<ImageVariables> made(new ImageVariables);
  const uint64_t alignment = std::max<uint64_t>(kLeastAlignment, segment.p_align);
  const uint64_t bytes = segment.p_memsz - MR_SHARED_OFFSET;
  if (!Reserve(bytes, alignment, &made->first_)) {
    std::atomic_ref(place->mask).store(0);
    return Status(StatusCode::kOutOfMemory, "reserving the shared variables of a kernel's image");
  }
  made->library_ = library;
  made->mask_ = &place->mask;
  made->number_ = image_count++;
  made->bytes_ = bytes;
  made->initial_ = {base + segment.p_vaddr, segment.p_filesz};
  place->image = kOwnVariables + made->first_;
  of_libraries[library] = made;
  return made;
}

ImageVariables::~ImageVariables() {
  if (library_ == nullptr) return;
  std::lock_guard lock(images_mutex);
  std::atomic_ref(*mask_).store(0);
  areas.erase(first_);
  of_libraries.erase(library_);
}

}  // namespace millrace::cpu
