// Copies between device memory and host memory that is not page-locked, through page-locked slots.
//
// One thread moves about 10 GB/s between two places of host memory, a copy engine five times that, so a few threads
// share the work: each has a lane of two slots, takes the next chunk, moves it into or out of a slot, and leaves the
// other slot to the copy engine meanwhile. Lanes need not agree on anything but who takes which chunk. The engine never
// touches the caller's memory.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"
#include "hal/thread.h"

namespace millrace::cuda {

/// A device's. Slots and threads are made by the first copy that needs them and stay until the device closes.
class Pageable {
 public:
  explicit Pageable(std::shared_ptr<Context> context);
  /// With so many threads beside the one that asks.
  Pageable(std::shared_ptr<Context> context, unsigned helpers)
      : context_(std::move(context)), helpers_(helpers), lanes_(helpers + 1) {}
  ~Pageable();

  Pageable(const Pageable&) = delete;
  Pageable& operator=(const Pageable&) = delete;

  /// The one of a device, which everybody who opened it shares. Thread: any.
  static std::shared_ptr<Pageable> Of(const std::shared_ptr<Context>& context);

  /// One end is device memory of this device; without a stream, on a hidden one. Returns when the bytes are there, or
  /// when nothing is under way any more. Copies of one device follow one another. Thread: pump. Blocks.
  Status Copy(std::optional<CUstream> stream, std::byte* dst, const std::byte* src, uint64_t bytes);

  /// Threads beside the one that asks, on a machine of so many cores.
  static constexpr unsigned HelpersFor(unsigned cores) { return cores / 4 < 4 ? cores / 4 : 4; }

 private:
  static constexpr uint64_t kSlotBytes = 4 << 20;
  static constexpr uint64_t kSmallestChunk = 256 << 10;

  struct Call {
    CUstream stream = nullptr;
    std::byte* dst = nullptr;
    const std::byte* src = nullptr;
    uint64_t bytes = 0;
    uint64_t chunk_bytes = 0;
    bool is_upload = false;
    std::atomic<uint64_t> next{0};  // Offset of the next chunk that nobody took.
    std::atomic<bool> has_failed{false};
  };

  struct Slot {
    std::unique_ptr<LockedBlock> block;
    CUevent event = nullptr;  // Behind the last use of the block.
    bool is_busy = false;
    uint64_t offset = 0;  // Of the chunk that is in it.
  };

  /// One thread's.
  struct Lane {
    std::array<Slot, 2> slots;
  };

  Status Prepare(Lane& lane);
  Status RunLane(Lane& lane, Call& call);
  Status MoveChunks(Lane& lane, Call& call);
  Status Start(Slot& slot, Call& call, uint64_t offset);
  Status Settle(Slot& slot, Call& call);
  void StartHelpers();
  void Help(Lane& lane);
  void Fail(Call& call, Status status);

  const std::shared_ptr<Context> context_;
  const unsigned helpers_;

  std::mutex call_mutex_;        // Held by the copy that is under way, and around what only it touches.
  std::vector<Lane> lanes_;      // The first is the caller's. Each is its thread's alone while a call runs.
  std::vector<Thread> threads_;  // As many as the system gave, at most `helpers_`.
  CUstream hidden_ = nullptr;    // Made when a copy brings no stream.

  std::mutex mutex_;
  std::condition_variable changed_;
  Call* call_ = nullptr;     // Guarded by mutex_, like those below. What helpers may join.
  uint64_t generation_ = 0;  // Of `call_`, so that none joins it twice.
  unsigned busy_ = 0;        // Helpers in the call.
  bool is_ending_ = false;
  Status status_;  // Of the call: the first failure.
};

}  // namespace millrace::cuda
