// A handle table that other channels read too, because a copy may name memory of two devices.
//
// Only its own channel changes it. So that channel looks objects up without a lock, and takes the lock to bind or
// release. Other threads take the lock to look an object up, and get a copy of it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/handle_table.h"
#include "runtime/waiting_streams.h"

namespace millrace {

template <typename T>
class SharedTable {
 public:
  /// Thread: channel. Valid until the next change.
  T* Find(uint32_t handle) { return table_.Find(handle); }

  /// Thread: channel.
  [[nodiscard]] bool IsFree(uint32_t handle) const { return table_.IsFree(handle); }

  /// Thread: channel. Wakes the streams, of any channel, that wait for the handle.
  T& Bind(uint32_t handle, T object) {
    WaitingStreams waiting;
    T* bound = nullptr;
    {
      std::lock_guard lock(mutex_);
      bound = &table_.Bind(handle, std::move(object));
      if (auto node = waits_.extract(handle)) waiting = std::move(node.mapped());
    }
    waiting.Wake();
    return *bound;
  }

  /// Releases the handle and returns its object, if there is one. Thread: channel.
  std::optional<T> Take(uint32_t handle) {
    std::lock_guard lock(mutex_);
    T* found = table_.Find(handle);
    if (found == nullptr) return std::nullopt;
    T object = std::move(*found);
    table_.Release(handle);
    return object;
  }

  /// Whether a later generation of the index was bound. Thread: channel.
  [[nodiscard]] bool IsOver(uint32_t handle) { return table_.IsOver(handle); }

  /// Removes and returns all objects. Thread: channel.
  HandleTable<T> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(table_, {});
  }

  /// True if the handle may still be bound; the stream is woken then. Thread: channel.
  bool WaitsFor(uint32_t handle, std::shared_ptr<StreamWaker> waker, uint32_t stream) {
    if (table_.Find(handle) != nullptr || !table_.MayBeBoundLater(handle)) return false;
    std::lock_guard lock(mutex_);
    waits_[handle].Add(std::move(waker), stream);
    return true;
  }

  struct Sight {
    std::optional<T> object;
    bool comes_later = false;  // The handle may still be bound; the stream is woken then.
  };
  /// Thread: any other channel.
  Sight Look(uint32_t handle, std::shared_ptr<StreamWaker> waker, uint32_t stream) {
    std::lock_guard lock(mutex_);
    if (const T* found = table_.Find(handle)) return {.object = *found};
    if (!table_.MayBeBoundLater(handle)) return {};
    waits_[handle].Add(std::move(waker), stream);
    return {.comes_later = true};
  }
  /// Thread: any.
  std::optional<T> Look(uint32_t handle) {
    std::lock_guard lock(mutex_);
    const T* found = table_.Find(handle);
    return found == nullptr ? std::nullopt : std::optional<T>(*found);
  }

  /// Calls `visit(object)` for every object. Thread: any.
  template <typename Visit>
  void ForEach(Visit visit) {
    std::lock_guard lock(mutex_);
    table_.ForEach(visit);
  }

  /// Wakes all streams that wait for a handle, because it may never be bound. Thread: any.
  void WakeAll() {
    std::unordered_map<uint32_t, WaitingStreams> waits;
    {
      std::lock_guard lock(mutex_);
      waits.swap(waits_);
    }
    for (const auto& [handle, waiting] : waits) waiting.Wake();
  }

 private:
  std::mutex mutex_;
  HandleTable<T> table_;                                // Changed by the channel with mutex_ held, read by it without.
  std::unordered_map<uint32_t, WaitingStreams> waits_;  // Guarded by mutex_.
};

}  // namespace millrace
