// A table of objects by handle. Owners choose the handles, so the caller of Bind names the index. A lookup compares the
// generation of the handle with that of the entry, so a stale handle never finds a newer object.
//
// Thread: channel.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "protocol/protocol.gen.h"

namespace millrace {

constexpr uint32_t HandleIndex(uint32_t handle) {
  return handle & ((1u << protocol::kHandleIndexBits) - 1);
}
constexpr uint32_t HandleGeneration(uint32_t handle) {
  return handle >> protocol::kHandleIndexBits;
}

template <typename T>
class HandleTable {
 public:
  /// The object of a handle, or null when the handle was never bound, was released, or is from another generation.
  T* Find(uint32_t handle) {
    const uint32_t index = HandleIndex(handle);
    if (index >= entries_.size()) return nullptr;
    Entry& entry = entries_[index];
    return entry.generation != 0 && entry.generation == HandleGeneration(handle) ? &entry.object : nullptr;
  }

  /// Whether the handle can be one that an owner reserved: its index has no object, of any generation.
  [[nodiscard]] bool IsFree(uint32_t handle) const {
    const uint32_t index = HandleIndex(handle);
    return HandleGeneration(handle) != 0 && (index >= entries_.size() || entries_[index].generation == 0);
  }

  /// Binds a handle and replaces the object of an earlier generation, if there is one.
  T& Bind(uint32_t handle, T object) {
    const uint32_t index = HandleIndex(handle);
    if (index >= entries_.size()) entries_.resize(index + 1);
    Entry& entry = entries_[index];
    entry.generation = entry.newest = HandleGeneration(handle);
    entry.object = std::move(object);
    return entry.object;
  }

  /// The object of a handle. If there is none, binds the handle to a default-constructed object.
  T& FindOrBind(uint32_t handle) {
    T* found = Find(handle);
    return found != nullptr ? *found : Bind(handle, T{});
  }

  void Release(uint32_t handle) {
    if (Find(handle) == nullptr) return;
    Entry& entry = entries_[HandleIndex(handle)];
    entry.generation = 0;
    entry.object = T{};
  }

  /// False for a handle that was bound and released, or never given out: a wait for it would never end.
  [[nodiscard]] bool MayBeBoundLater(uint32_t handle) const {
    constexpr uint32_t kGenerations = 1u << (32 - protocol::kHandleIndexBits);
    const uint32_t index = HandleIndex(handle);
    if (HandleGeneration(handle) == 0) return false;
    if (index >= entries_.size() || entries_[index].newest == 0) return true;
    // Generations wrap around, so a generation counts as later if it is less than half the range ahead.
    const uint32_t ahead = (HandleGeneration(handle) - entries_[index].newest) % kGenerations;
    return ahead != 0 && ahead < kGenerations / 2;
  }

  /// Whether a later generation of the index was bound.
  [[nodiscard]] bool IsOver(uint32_t handle) { return Find(handle) == nullptr && !MayBeBoundLater(handle); }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (Entry& entry : entries_) {
      if (entry.generation != 0) visit(entry.object);
    }
  }

  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    uint32_t generation = 0;  // The generation of the bound object; 0 is never a handle's generation.
    uint32_t newest = 0;      // The last generation that was bound.
    T object{};
  };
  std::vector<Entry> entries_;
};

}  // namespace millrace
