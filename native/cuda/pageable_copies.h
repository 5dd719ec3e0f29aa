// Copies between device memory and pageable host memory, through page-locked slots.
//
// One thread moves about 10 GB/s within host memory, and a copy engine five times that, so a few threads share the
// work: each has two slots, takes the next chunk, moves it into or out of one slot, and leaves the other slot to the
// copy engine meanwhile. The threads share only the counter of chunks. The copy engine never accesses the caller's
// memory.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/context.h"
#include "cuda/memory.h"
#include "hal/helper_threads.h"

namespace millrace::cuda {

/// One per device. The first copy creates the slots and threads, which stay until the device closes.
class PageableCopies {
 public:
  explicit PageableCopies(std::shared_ptr<Context> context);
  /// `helpers`: number of threads besides the calling one.
  PageableCopies(std::shared_ptr<Context> context, unsigned helpers)
      : context_(std::move(context)), pairs_(helpers + 1), helpers_("mr-pageable", helpers) {}
  ~PageableCopies();

  PageableCopies(const PageableCopies&) = delete;
  PageableCopies& operator=(const PageableCopies&) = delete;

  /// The object of a device, which all users of the device share. Thread: any.
  static std::shared_ptr<PageableCopies> Of(const std::shared_ptr<Context>& context);

  /// Copies between host memory and memory of this device; without a stream, on a hidden one. Returns when the copy is
  /// complete, or failed and no part is in flight. Copies of one device run one after the other. Thread: blocking
  /// calls. Blocks.
  Status Copy(std::optional<CUstream> stream, std::byte* dst, const std::byte* src, uint64_t bytes);

  /// Threads besides the calling one, for a machine with this many cores. More than twelve threads are no faster.
  static constexpr unsigned HelpersFor(unsigned cores) { return cores * 3 / 4 < 12 ? cores * 3 / 4 : 11; }

 private:
  /// Smaller slots cost more driver calls, and of larger ones the last copies of a call overlap with less.
  static constexpr uint64_t kSlotBytes = 2 << 20;
  static constexpr uint64_t kSmallestChunk = 256 << 10;

  struct Call {
    CUstream stream = nullptr;
    std::byte* dst = nullptr;
    const std::byte* src = nullptr;
    uint64_t bytes = 0;
    uint64_t chunk_bytes = 0;
    bool is_upload = false;
    std::atomic<uint64_t> next{0};  // Offset of the next free chunk.
    std::atomic<bool> has_failed{false};
  };

  struct Slot {
    std::byte* data = nullptr;
    CUevent event = nullptr;  // Recorded after the slot's last use.
    bool is_busy = false;
    uint64_t offset = 0;  // Of the chunk in the copy.
  };

  /// One thread's slots.
  struct SlotPair {
    std::unique_ptr<LockedBlock> pages;
    std::array<Slot, 2> slots;
  };

  Status Prepare(SlotPair& pair);
  Status RunPair(SlotPair& pair, Call& call);
  Status MoveChunks(SlotPair& pair, Call& call);
  Status Start(Slot& slot, Call& call, uint64_t offset, bool is_locked);
  Status Settle(Slot& slot, Call& call);
  /// The first failure of a call is its result. Thread: any of the call's.
  void Fail(Call& call, Status status);

  const std::shared_ptr<Context> context_;

  std::mutex call_mutex_;        // Held by the running copy; guards what only it uses.
  std::vector<SlotPair> pairs_;  // The first is the caller's. During a call, each belongs to its thread.
  CUstream hidden_ = nullptr;    // Created for the first copy without a stream.
  HelperThreads helpers_;

  std::mutex mutex_;
  Status status_;  // The call's first failure. Guarded by mutex_.
};

}  // namespace millrace::cuda
