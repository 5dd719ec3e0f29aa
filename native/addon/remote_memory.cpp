#include "addon/remote_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace millrace {
namespace {

/// Zeros between the content of a range are not written in pieces smaller than this.
constexpr size_t kPiece = 64 * 1024;

bool IsZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

Result<std::shared_ptr<RemoteMemory>> RemoteMemory::Make(size_t timeline_bytes, size_t arena_bytes) {
  const int file = memfd_create("millrace-device", MFD_CLOEXEC);
  if (file < 0) return Status(StatusCode::kUnavailable, "making memory that processes share", errno);
  std::shared_ptr<RemoteMemory> memory(new RemoteMemory(file, timeline_bytes, arena_bytes));
  if (ftruncate(file, static_cast<off_t>(memory->end_)) != 0)
    return Status(StatusCode::kUnavailable, "making memory that processes share", errno);
  if (const Status mapped = memory->MapBlock(); !mapped.ok()) return mapped;
  return memory;
}

Result<std::shared_ptr<RemoteMemory>> RemoteMemory::Open(int file, size_t timeline_bytes, size_t arena_bytes) {
  std::shared_ptr<RemoteMemory> memory(new RemoteMemory(file, timeline_bytes, arena_bytes));
  // Compilers that this process starts need not inherit it.
  static_cast<void>(fcntl(file, F_SETFD, FD_CLOEXEC));
  if (const Status mapped = memory->MapBlock(); !mapped.ok()) return mapped;
  return memory;
}

RemoteMemory::~RemoteMemory() {
  if (block_ != nullptr) munmap(block_, remote::kBlockBytes);
  close(file_);
}

Status RemoteMemory::MapBlock() {
  void* const block = mmap(nullptr, remote::kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_,
                           static_cast<off_t>(end_ - remote::kBlockBytes));
  if (block == MAP_FAILED) return {StatusCode::kUnavailable, "mapping memory that processes share", errno};
  block_ = static_cast<remote::SharedBlock*>(block);
  return {};
}

SharedPages RemoteMemory::MapTimeline(std::span<std::byte> timeline) const {
  return SharedPages::MapFile(timeline.data(), timeline.size(), timeline.size(), file_, 0);
}

SharedPages RemoteMemory::MapArena(std::span<std::byte> arena, size_t reserved) const {
  return SharedPages::MapFile(arena.data(), arena.size(), reserved, file_, static_cast<off_t>(timeline_bytes_));
}

uint64_t RemoteMemory::Take(size_t bytes) {
  // The file has holes where nothing was written, so addresses in it are not used again.
  if (ftruncate(file_, static_cast<off_t>(end_ + bytes)) != 0) return 0;
  const uint64_t offset = end_;
  end_ += bytes;
  return offset;
}

void RemoteMemory::Release(uint64_t offset, size_t bytes) {
  static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                              static_cast<off_t>(bytes)));
}

bool RemoteMemory::Write(uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPiece));
    bytes = bytes.subspan(piece.size());
    for (auto rest = piece; !rest.empty() && !IsZero(rest);) {
      const ssize_t written =
          pwrite(file_, rest.data(), rest.size(), static_cast<off_t>(offset + (piece.size() - rest.size())));
      if (written <= 0) return false;
      rest = rest.subspan(static_cast<size_t>(written));
    }
    offset += piece.size();
  }
  return true;
}

bool RemoteMemory::Read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

bool RemoteMemory::MapAt(std::span<std::byte> target, uint64_t offset) const {
  return mmap(target.data(), target.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace millrace
