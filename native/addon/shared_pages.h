// Memory that JavaScript and native threads share, and that outlives JavaScript.
//
// In Node 20, a SharedArrayBuffer's memory cannot outlive the environments that refer to it. If an owner and its
// device's worker are terminated together, both release it, while a kernel that cannot be stopped still runs and will
// report its end. So the buffer's pages are replaced by those of an anonymous file, which native code maps a second
// time: JavaScript uses its own addresses, native code only the second ones. V8 unmaps the first at any time; the
// second mapping lives as long as the channel's last user, including its own thread.
//
// The buffers must start on a page boundary and own all their pages, which growable ones do.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace millrace {

class SharedPages {
 public:
  SharedPages() = default;
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;
  /// Unmaps the native mapping.
  ~SharedPages();

  /// Takes over `reserved` bytes from `start`, of which the first `used` are accessible now; V8 makes the others
  /// accessible as the buffer grows. Keeps the content of the used bytes. If the system refuses, native code uses
  /// JavaScript's addresses. Thread: control, before other code gets the buffer.
  static SharedPages Map(std::byte* start, size_t used, size_t reserved);

  /// The same with the bytes of a file from `offset` on, whose content stays.
  static SharedPages MapFile(std::byte* start, size_t used, size_t reserved, int file, off_t offset);

  /// The native addresses of the buffer's memory; other memory unchanged.
  [[nodiscard]] bool is_mapped() const { return native_ != nullptr; }
  [[nodiscard]] std::span<std::byte> Native(std::span<std::byte> bytes) const;

 private:
  std::byte* script_ = nullptr;
  std::byte* native_ = nullptr;
  size_t bytes_ = 0;
};

/// Maps the pages of `source`, which a SharedPages has taken over, also at `target`, to which no other code has access
/// yet. False where the system refuses; `target` then has empty pages. Both are whole pages of the same size.
[[nodiscard]] bool MapAlso(std::span<std::byte> target, std::span<std::byte> source);

/// Gives `target` empty pages of its own. Later reads and writes of it no longer reach the former pages. False where
/// the system refuses. Thread: any.
[[nodiscard]] bool MapApart(std::span<std::byte> target);

}  // namespace millrace
