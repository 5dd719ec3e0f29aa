// A handle table that other channels look into, since a copy may name memory of two devices.
//
// Its own channel is the only one that changes it, so that channel looks things up without a lock and takes one while
// it binds or releases. Everybody else takes the lock to look, and gets a copy of what is found.
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

  /// Releases the handle; what it named, or nothing. Thread: channel.
  std::optional<T> Take(uint32_t handle) {
    std::lock_guard lock(mutex_);
    T* found = table_.Find(handle);
    if (found == nullptr) return std::nullopt;
    T object = std::move(*found);
    table_.Release(handle);
    return object;
  }

  /// Everything there is, which nobody finds any more. Thread: channel.
  HandleTable<T> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(table_, {});
  }

  /// True when the handle may still be bound by something that is under way: the stream is then woken. Thread: channel.
  bool WaitsFor(uint32_t handle, std::shared_ptr<StreamWaker> waker, uint32_t stream) {
    if (table_.Find(handle) != nullptr || !table_.MayBeBoundLater(handle)) return false;
    std::lock_guard lock(mutex_);
    waits_[handle].Add(std::move(waker), stream);
    return true;
  }

  struct Sight {
    std::optional<T> object;
    bool comes_later = false;  // The stream is woken then.
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

  /// `visit(object)` for everything there is. Thread: any.
  template <typename Visit>
  void ForEach(Visit visit) {
    std::lock_guard lock(mutex_);
    table_.ForEach(visit);
  }

  /// Wakes everybody who waits for a handle: it may never come. Thread: any.
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
