// Sees freed memory to its end that the driver frees only by waiting: memory that processes share.
//
// cuMemFree and cuIpcCloseMemHandle wait for the device, so no channel calls them. It records an event behind the
// memory's last use instead and hands both over; a thread of the device looks at the events, and what they let go is
// kept (deferred_frees.h). The driver has it back when the device has nothing to do, when memory is short or trimmed,
// when too much is kept, and when the device closes. Only the first waits for nothing. The thread starts with the first
// such memory, and sleeps while there is none. Where the system refuses a thread, allocations, trims and the device's
// end look at the events, and the next such memory tries to start it again.
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

  /// Takes it after the work that `stream` was given so far. Where no event can be had, when the device closes.
  /// Thread: channel.
  void FreeAfter(CUstream stream, std::unique_ptr<Memory> memory);
  /// Frees it when the device closes. Thread: any.
  void FreeAtEnd(std::unique_ptr<Memory> memory);

  /// Memory that nobody uses any more and that suits so many bytes; null when there is none. Thread: any.
  [[nodiscard]] std::unique_ptr<Memory> Reuse(uint64_t bytes);
  /// Gives the driver back what nobody uses any more, but for `keep_bytes` of this process's own. May wait for the
  /// device. Thread: any that may.
  void GiveBack(uint64_t keep_bytes);

  /// What was freed and the driver does not have back, other processes' not counted. Thread: any.
  [[nodiscard]] uint64_t Bytes();
  /// The most of it since ResetHigh. Thread: any.
  [[nodiscard]] uint64_t HighBytes();
  void ResetHigh();
  /// Of it, what an allocation could have at once. Thread: any.
  [[nodiscard]] uint64_t UnusedBytes() const { return kept_.own_bytes(); }

 private:
  struct Entry {
    CUevent event;  // Null: at the end.
    std::unique_ptr<Memory> memory;
  };

  void Run();
  void Add(Entry entry);
  /// Nobody uses it any more.
  void Keep(std::unique_ptr<Memory> memory);
  /// Keeps what nobody uses any more; whether there was some. With the context current.
  bool Sweep();
  [[nodiscard]] bool IsReached(const Entry& entry);
  /// Call with `mutex_` held.
  [[nodiscard]] bool AwaitsEvents() const;
  /// With the context current.
  void GiveBackTooMuch();

  const std::shared_ptr<Context> context_;
  const uint64_t most_bytes_;
  DeferredFrees kept_;

  std::mutex sweep_mutex_;  // Held by a sweep, so that after one all that was reached is kept. Taken before mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // Guarded by mutex_, like those below.
  uint64_t waiting_bytes_ = 0;  // This process's own that is not kept yet.
  uint64_t high_bytes_ = 0;
  bool is_ending_ = false;
  Thread thread_;
};

}  // namespace millrace::cuda
