// Frees memory that processes share, which the driver frees only by waiting.
//
// cuMemFree and cuIpcCloseMemHandle wait for the device, so no channel calls them. Instead it records an event after
// the memory's last use and hands both over; a thread of the device polls the events, and released memory is kept
// (deferred_frees.h). It returns to the driver when the device is idle, when memory is short or trimmed, when too much
// is kept, and when the device closes. Only the first does not wait. The thread starts with the first such memory, and
// sleeps while there is none. If the system refuses a thread, allocations, trims and closing poll the events, and the
// next such memory retries the start.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/context.h"
#include "cuda/deferred_frees.h"
#include "cuda/memory.h"
#include "hal/thread.h"

namespace millrace::cuda {

class Reaper {
 public:
  /// `device_bytes`: the device's whole memory.
  Reaper(std::shared_ptr<Context> context, uint64_t device_bytes);
  /// Frees the rest after all work of the device.
  ~Reaper();

  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Frees it after the work that `stream` has so far; when the device closes, if no event can be created. Thread:
  /// channel.
  void FreeAfter(CUstream stream, std::unique_ptr<Memory> memory);
  /// Frees it when the device closes. Thread: any.
  void FreeAtEnd(std::unique_ptr<Memory> memory);

  /// Unused memory that suits `bytes`; null when there is none. Thread: any.
  [[nodiscard]] std::unique_ptr<Memory> Reuse(uint64_t bytes);
  /// Returns unused memory to the driver, except `keep_bytes` of this process's own. May wait for the device. Thread:
  /// any that may block.
  void GiveBack(uint64_t keep_bytes);

  /// Bytes that were freed but not yet returned to the driver, without other processes' memory. Thread: any.
  [[nodiscard]] uint64_t Bytes();
  /// The maximum of Bytes() since ResetHigh. Thread: any.
  [[nodiscard]] uint64_t HighBytes();
  void ResetHigh();
  /// The part that an allocation could reuse now. Thread: any.
  [[nodiscard]] uint64_t UnusedBytes() const { return kept_.own_bytes(); }

 private:
  struct Entry {
    CUevent event;  // Null: freed when the device closes.
    std::unique_ptr<Memory> memory;
  };

  void Run();
  void Add(Entry entry);
  /// Keeps memory that is no longer used.
  void Keep(std::unique_ptr<Memory> memory);
  /// Keeps all memory whose last use is over; returns whether there was any. With the context current.
  bool Sweep();
  [[nodiscard]] bool IsReached(const Entry& entry);
  /// Needs `mutex_`.
  [[nodiscard]] bool AwaitsEvents() const;
  /// With the context current.
  void GiveBackTooMuch();

  const std::shared_ptr<Context> context_;
  const uint64_t most_bytes_;
  DeferredFrees kept_;

  std::mutex sweep_mutex_;  // Held by a sweep, so that all released memory is kept afterwards. Locked before mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // Guarded by mutex_, like those below.
  uint64_t waiting_bytes_ = 0;  // This process's own memory that is still in use.
  uint64_t high_bytes_ = 0;
  bool is_ending_ = false;
  Thread thread_;
};

}  // namespace millrace::cuda
