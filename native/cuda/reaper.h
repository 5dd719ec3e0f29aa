// Frees what the driver frees only by waiting: memory that processes share.
//
// cuMemFree and cuIpcCloseMemHandle wait for the device, so no channel calls them. It records an event behind the
// memory's last use instead and hands both over; a thread of the device looks at the events and frees what they let go.
// The thread starts with the first such memory, and sleeps while there is none.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"

namespace millrace::cuda {

class Reaper {
 public:
  explicit Reaper(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  /// Frees the rest after all work of the device.
  ~Reaper();

  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Frees it after the work that `stream` was given so far. Where no event can be had, when the device closes.
  /// Thread: channel.
  void FreeAfter(CUstream stream, std::unique_ptr<Memory> memory);
  /// Frees it when the device closes. Thread: any.
  void FreeAtEnd(std::unique_ptr<Memory> memory);

  /// Frees what is free to go, now. May wait for the device. Thread: any.
  void Sweep();

 private:
  struct Entry {
    CUevent event;  // Null: at the end.
    std::unique_ptr<Memory> memory;
  };

  void Run();
  /// Takes out the entries whose event was reached. With the context current.
  std::vector<Entry> TakeReached();
  void Release(std::vector<Entry> entries);

  const std::shared_ptr<Context> context_;

  std::mutex sweep_mutex_;  // Held by a sweep, so that after one nothing is about to be freed. Taken before mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // Guarded by mutex_, like those below.
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace millrace::cuda
