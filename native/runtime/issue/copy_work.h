// A COPY record that is being issued: its fields, and the memory that they name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hal/hal.h"
#include "runtime/host_entry.h"
#include "runtime/in_flight.h"
#include "runtime/issue/outputs.h"
#include "runtime/memory_entry.h"

namespace millrace {

class Channel;

struct CopyEnd {
  Channel* home = nullptr;  // Null when its device is lost or closed.
  uint32_t device = 0;      // The id of its channel.
  uint16_t space = 0;
  uint32_t handle = 0;
  uint64_t offset = 0;

  std::byte* address = nullptr;
  MemoryRef* entry = nullptr;  // Null for host memory.
  MemoryRef held;              // Of another device.
  HostEntry host;              // Empty for device memory.
  HostRange range;             // The part of it.

  [[nodiscard]] bool IsDevice() const { return space == static_cast<uint16_t>(protocol::MemorySpace::kDevice); }
  [[nodiscard]] std::shared_ptr<const hal::HostLease> Lease() const {
    return host.state == nullptr ? nullptr : host.lease();
  }
};

/// Not movable once its ends were found, because they point into it.
struct CopyWork {
  uint64_t bytes = 0;
  uint32_t flags = 0;
  uint32_t reported = 0;
  CopyEnd dst;
  CopyEnd src;
  // Its ends, once they were found.
  std::array<MemoryUse, 2> memory_uses;
  size_t memory_count = 0;
  std::array<HostUse, 2> host_uses;
  size_t host_count = 0;

  [[nodiscard]] bool Is(protocol::CopyFlag flag) const { return (flags & static_cast<uint32_t>(flag)) != 0; }
  /// The failure that poisoned its source, or the failed allocation of its destination; 0 when there is none.
  [[nodiscard]] FailureId Cause() const {
    const FailureId cause = src.entry == nullptr ? src.range.poisoned_by(reported) : (*src.entry)->poison.by();
    if (cause != 0 || dst.entry == nullptr || (*dst.entry)->address != nullptr) return cause;
    return (*dst.entry)->poison.by();
  }
  [[nodiscard]] Outputs Uses() const { return {.memory = Memory(), .host = Host()}; }
  void AddMemory(const CopyEnd& end) {
    const Use use = &end == &src ? Use::kRead : IsWhole() ? Use::kOverwrite : Use::kWrite;
    memory_uses[memory_count++] = {end.entry->get(), use};
  }
  [[nodiscard]] std::span<const MemoryUse> Memory() const { return {memory_uses.data(), memory_count}; }
  [[nodiscard]] std::span<const HostUse> Host() const { return {host_uses.data(), host_count}; }
  /// Whether it overwrites the whole destination, alone or with the pieces that follow.
  [[nodiscard]] bool IsWhole() const {
    if (dst.entry == nullptr) return false;
    return Is(protocol::CopyFlag::kFirstPiece) || (dst.offset == 0 && bytes == (*dst.entry)->bytes);
  }
};

}  // namespace millrace
