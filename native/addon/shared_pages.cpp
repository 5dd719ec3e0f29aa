#include "addon/shared_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace millrace {

SharedPages::SharedPages(SharedPages&& other) noexcept
    : script_(other.script_), native_(std::exchange(other.native_, nullptr)), bytes_(other.bytes_) {}

SharedPages& SharedPages::operator=(SharedPages&& other) noexcept {
  std::swap(script_, other.script_);
  std::swap(native_, other.native_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedPages::~SharedPages() {
  if (native_ != nullptr) munmap(native_, bytes_);
}

SharedPages SharedPages::Map(std::byte* start, size_t used, size_t reserved) {
  SharedPages pages;
  const int file = memfd_create("millrace", MFD_CLOEXEC);
  if (file < 0) return pages;
  if (ftruncate(file, static_cast<off_t>(reserved)) == 0 &&
      pwrite(file, start, used, 0) == static_cast<ssize_t>(used)) {
    pages = MapFile(start, used, reserved, file, 0);
  }
  close(file);
  return pages;
}

SharedPages SharedPages::MapFile(std::byte* start, size_t used, size_t reserved, int file, off_t offset) {
  SharedPages pages;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (reinterpret_cast<uintptr_t>(start) % page != 0 || used % page != 0 || reserved % page != 0) return pages;
  void* const native = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, offset);
  if (native == MAP_FAILED) return pages;
  // Replaced by a single call, so that every address always has a page that it can use: if the second call fails,
  // V8 merely finds the rest accessible already.
  if (mmap(start, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, offset) ==
      MAP_FAILED) {
    munmap(native, reserved);
    return pages;
  }
  static_cast<void>(mprotect(start + used, reserved - used, PROT_NONE));
  pages.script_ = start;
  pages.native_ = static_cast<std::byte*>(native);
  pages.bytes_ = reserved;
  return pages;
}

std::span<std::byte> SharedPages::Native(std::span<std::byte> bytes) const {
  if (native_ == nullptr || bytes.data() < script_ || bytes.data() + bytes.size() > script_ + bytes_) return bytes;
  return {native_ + (bytes.data() - script_), bytes.size()};
}

namespace {

bool IsWholePages(std::span<std::byte> bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return !bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % page == 0 && bytes.size() % page == 0;
}

}  // namespace

bool MapAlso(std::span<std::byte> target, std::span<std::byte> source) {
  if (!IsWholePages(target) || !IsWholePages(source) || target.size() != source.size()) return false;
  // An old size of 0 leaves the old mapping in place and maps its pages a second time. Linux refuses that for private
  // mappings, such as an arena whose pages were not replaced; kernels before 6.17 then have unmapped a fixed target
  // already. So the pages are mapped elsewhere first.
  void* const made = mremap(source.data(), 0, target.size(), MREMAP_MAYMOVE);
  if (made == MAP_FAILED) return false;
  if (mremap(made, target.size(), target.size(), MREMAP_MAYMOVE | MREMAP_FIXED, target.data()) != MAP_FAILED)
    return true;
  munmap(made, target.size());
  // In case the target was unmapped; its pages were empty.
  static_cast<void>(MapApart(target));
  return false;
}

bool MapApart(std::span<std::byte> target) {
  if (!IsWholePages(target)) return false;
  return mmap(target.data(), target.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

}  // namespace millrace
