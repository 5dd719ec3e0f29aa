// Memory that JavaScript and native threads share, and that outlives JavaScript.
//
// Node 20 gives no way to keep a SharedArrayBuffer's memory beyond the environments that refer to it. When an owner and
// its device's worker are terminated together, both let go, while a kernel that cannot be stopped still runs and will
// report its end. So the pages of the buffer are replaced by those of an anonymous file that native code maps a second
// time: JavaScript uses its own addresses, native code only the second ones. V8 unmaps the first when it likes; the
// second go with the last who uses the channel, its own thread included.
//
// This needs buffers that start on a page and own their pages to the end, which growable ones do.
#pragma once

#include <cstddef>
#include <span>

namespace millrace {

class SharedPages {
 public:
  SharedPages() = default;
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;
  /// Unmaps the native side.
  ~SharedPages();

  /// Takes over `reserved` bytes from `start`, of which the first `used` may be read and written now; V8 makes the
  /// others usable as the buffer grows. What the used ones hold is kept. Where the system refuses, native code uses
  /// JavaScript's addresses. Thread: control, before anybody else has seen the buffer.
  static SharedPages Map(std::byte* start, size_t used, size_t reserved);

  /// The native side of memory of the buffer; other memory as it is.
  [[nodiscard]] std::span<std::byte> Native(std::span<std::byte> bytes) const;

 private:
  std::byte* script_ = nullptr;
  std::byte* native_ = nullptr;
  size_t bytes_ = 0;
};

/// Maps the pages of `source`, which a SharedPages has taken over, also at `target`, which nobody has seen yet. False
/// where the system refuses; `target` then has the pages that it had. Both are whole pages of the same size.
[[nodiscard]] bool MapAlso(std::span<std::byte> target, std::span<std::byte> source);

/// Gives `target` empty pages of its own. Whoever still reads or writes it no longer reaches the former pages. False
/// where the system refuses. Thread: any.
[[nodiscard]] bool MapApart(std::span<std::byte> target);

}  // namespace millrace
