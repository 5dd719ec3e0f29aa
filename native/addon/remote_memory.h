// The file whose pages an owner and the process of its device share: the timeline, the arena, the block of
// runtime/remote, and behind these ranges for memory outside of the arena. It has no name; the child inherits it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "addon/shared_pages.h"
#include "hal/status.h"
#include "runtime/remote/shared_block.h"

namespace millrace {

/// Thread: that of the environment which has it.
class RemoteMemory {
 public:
  /// The owner's: a new file.
  static Result<std::shared_ptr<RemoteMemory>> Make(size_t timeline_bytes, size_t arena_bytes);
  /// Of the device's process, with the file that it inherited.
  static Result<std::shared_ptr<RemoteMemory>> Open(int file, size_t timeline_bytes, size_t arena_bytes);
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  ~RemoteMemory();

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] remote::SharedBlock& block() const { return *block_; }
  [[nodiscard]] SharedPages MapTimeline(std::span<std::byte> timeline) const;
  [[nodiscard]] SharedPages MapArena(std::span<std::byte> arena, size_t reserved) const;

  /// A range of so many bytes, whole pages, all 0. 0 if the system refuses.
  uint64_t Take(size_t bytes);
  /// Its pages go back to the system. Nothing maps them any more, or reads 0 from now on.
  void Release(uint64_t offset, size_t bytes);
  [[nodiscard]] bool Write(uint64_t offset, std::span<const std::byte> bytes) const;
  [[nodiscard]] bool Read(uint64_t offset, std::span<std::byte> bytes) const;
  /// Replaces the pages of `target`, a whole buffer of whole pages, by those of a range. Its content is lost.
  [[nodiscard]] bool MapAt(std::span<std::byte> target, uint64_t offset) const;

 private:
  RemoteMemory(int file, size_t timeline_bytes, size_t arena_bytes)
      : file_(file), timeline_bytes_(timeline_bytes), end_(timeline_bytes + arena_bytes + remote::kBlockBytes) {}
  Status MapBlock();

  const int file_;
  const size_t timeline_bytes_;
  remote::SharedBlock* block_ = nullptr;
  uint64_t end_;  // Of the file.
};

}  // namespace millrace
