// A stream of a CPU device: a FIFO of items, each with its ticket.
//
// At most one thread *drives* a stream at a time: it takes the first item, runs it, reports its ticket, and takes the
// next. Driving passes on but is never shared: to the pool (Schedule), to the thread that finishes an item's last part,
// or, at a wait that is not complete, to the thread that completes it. So a wait blocks no thread, however many streams
// wait for each other, and the driver's data need no lock.
//
// How far each kind of thread drives:
//  - a pool thread runs anything, and ends its turn between items when something as urgent waits for a thread;
//  - a helper thread runs a few light items and leaves the rest to the pool. Helper threads are the channel's thread,
//    inside the call that submits to an idle stream (a single no-op then takes 12 to 15 us instead of 34 through a
//    sleeping pool), and a thread of any device that has just completed the awaited ticket.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "cpu/block_threads.h"
#include "cpu/cancellation.h"
#include "cpu/event_handle.h"
#include "cpu/graph.h"
#include "cpu/launch_item.h"
#include "cpu/memory.h"
#include "cpu/parallel_copy.h"
#include "cpu/parallel_item.h"
#include "cpu/thread_pool.h"
#include "hal/hal.h"

namespace millrace::cpu {

/// The state of a stream. Its work and waiting streams keep it alive, also after the stream is destroyed.
///
/// Lock rule: no thread holds two of these locks, or one of them and the pool's. A wait registers with the other stream
/// under the other's lock alone. The sink is called without a lock.
class StreamCore final : public Runnable, public std::enable_shared_from_this<StreamCore> {
 public:
  struct Nop {};
  struct Free {
    std::unique_ptr<hal::Memory> memory;  // Null: TakeFreed has taken it.
    uint64_t reusable_bytes = 0;
    bool is_light = true;
  };
  struct Wait {
    std::shared_ptr<StreamCore> other;
    hal::Ticket until;
  };
  using Stamp = std::shared_ptr<Timestamp>;
  /// A launch, or a large or strided copy or fill.
  using Parts = std::shared_ptr<ParallelItem>;
  /// A cooperative launch, and the threads of its blocks.
  struct CooperativeRun {
    std::shared_ptr<CooperativeGrid> grid;
    std::shared_ptr<BlockThreads> threads;
  };
  using OfGraph = std::shared_ptr<GraphLaunch>;
  /// Separate from other copies, because few copies need this much data.
  using OfHost = std::unique_ptr<const HostCopy>;
  using Work = std::variant<Nop, Fill, Copy, OfHost, Free, Wait, Stamp, Parts, CooperativeRun, OfGraph>;

  StreamCore(const hal::StreamRequest& request, std::shared_ptr<ThreadPool> pool);

  /// Thread: channel.
  void Submit(hal::Ticket ticket, Work work);
  [[nodiscard]] ScheduleFuzzer* fuzzer() const { return fuzzer_; }
  [[nodiscard]] const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  /// The memory of the latest free that has not run, of this reusable size, for the allocation that is submitted next:
  /// what uses it comes after everything that used it before. Null if there is none. Thread: channel.
  [[nodiscard]] std::unique_ptr<hal::Memory> TakeFreed(uint64_t reusable_bytes);
  /// Waits until no thread drives this stream. Thread: channel.
  void WaitUntilIdle();
  /// Whether `ticket` has been accepted. Thread: any.
  [[nodiscard]] bool HasAccepted(hal::Ticket ticket);
  [[nodiscard]] hal::Ticket Completed() const;
  /// Whether a thread drives this stream, or it waits for another stream. Thread: any.
  [[nodiscard]] bool IsDriven();

  // For a cancelled device: see cancel.cpp.
  /// `to`, of another device, will wait here for `until` in its item `by`. False: the ticket would never complete.
  [[nodiscard]] bool Promise(hal::Ticket until, const std::shared_ptr<StreamCore>& to, hal::Ticket by);
  /// Rejects further promises.
  void Refuse();
  [[nodiscard]] hal::Ticket Promised();
  /// The incomplete waits among the items up to `last`.
  [[nodiscard]] std::vector<Wait> WaitsUntil(hal::Ticket last);
  /// Items after `last` do not begin, and running ones stop. A later call can only lower `last`.
  void DropAfter(hal::Ticket last);
  /// Destroys the dropped items.
  void Clear();
  /// Drives the stream on a pool thread.
  void Run() override;

 private:
  using Cores = std::vector<std::shared_ptr<StreamCore>>;
  enum class Driver { kPoolThread, kHelper };
  struct Item {
    hal::Ticket ticket = 0;
    Work work;
  };
  /// A wait of a stream of another device.
  struct PromiseMade {
    hal::Ticket until;
    std::weak_ptr<StreamCore> to;
    hal::Ticket by;
  };
  /// The wait that began last; it may have completed.
  struct Waiting {
    hal::Ticket ticket = 0;
    std::weak_ptr<StreamCore> other;
    hal::Ticket until = 0;
  };
  struct Waiter {
    hal::Ticket until;
    std::shared_ptr<StreamCore> stream;
    friend bool operator<(const Waiter& a, const Waiter& b) { return a.until > b.until; }  // Earliest first.
  };

  void Visit();
  void Drive(Driver driver, Cores& released);
  void DriveReleased(Cores& released) const;
  [[nodiscard]] bool MustEndTurn(bool is_light, uint32_t run) const;
  [[nodiscard]] bool IsLight() const;
  [[nodiscard]] bool RunItem(Driver driver);
  [[nodiscard]] bool RunWait(const Wait& wait);
  [[nodiscard]] bool RunParts(Driver driver);
  [[nodiscard]] bool RunCooperative();
  [[nodiscard]] bool RunGraph(Driver driver);
  void TellFailure(const std::optional<hal::KernelFailure>& failure);
  void Report();
  [[nodiscard]] bool TakeNext(Cores& released);
  [[nodiscard]] bool WakeAt(hal::Ticket until, std::shared_ptr<StreamCore> stream);
  [[nodiscard]] bool Leave(const StreamCore& waiter);
  [[nodiscard]] bool IsDropped(hal::Ticket ticket) const { return Cancellation{&last_kept_, ticket}.IsRequested(); }
  void Drop();

  const std::shared_ptr<ThreadPool> pool_;
  ScheduleFuzzer* const fuzzer_;  // The pool's; null except in tests.
  protocol::TimelineSlot* const slot_;
  hal::ProgressSink* const sink_;

  // Only the driver uses these.
  Item current_;
  bool has_current_ = false;
  uint64_t began_ = 0;  // When, for a recorded timeline; else 0.

  // Equals the slot's device word. Waits read this copy, because the slot may already serve another stream.
  std::atomic<hal::Ticket> completed_{0};
  // Later items are dropped. Lowered with mutex_ held.
  std::atomic<hal::Ticket> last_kept_{UINT64_MAX};

  std::mutex mutex_;
  std::condition_variable idle_;
  // Guarded by mutex_.
  std::deque<Item> items_;
  std::vector<Waiter> waiters_;  // A heap.
  std::vector<PromiseMade> promises_;
  Waiting waiting_;
  std::vector<Item> dropped_;
  bool is_given_up_ = false;
  hal::Ticket accepted_ = 0;
  bool is_driven_ = false;
};

/// A partition has threads of its own.
struct CpuPartition {
  explicit CpuPartition(std::shared_ptr<ThreadPool> threads) : pool(std::move(threads)) {}
  const std::shared_ptr<ThreadPool> pool;
};

class CpuStream final : public hal::Stream {
 public:
  CpuStream(std::shared_ptr<StreamCore> core, std::shared_ptr<Heap> heap, std::shared_ptr<BlockThreads> threads,
            const GridLimits& grid_limits, std::shared_ptr<const CpuPartition> partition)
      : core_(std::move(core)),
        heap_(std::move(heap)),
        threads_(std::move(threads)),
        partition_(std::move(partition)),
        grid_limits_(grid_limits) {}
  /// The stream was drained, but its last driver may still be calling the sink, which ends with the stream.
  ~CpuStream() override {
    core_->WaitUntilIdle();
    threads_->Shrink(most_cooperative_blocks_);
  }

  Status Launch(hal::Ticket ticket, const hal::LaunchRequest& request) override;
  Status LaunchGraph(hal::Ticket ticket, const hal::GraphLaunchRequest& request) override;
  Status Copy(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint64_t bytes,
              const hal::HostLeases& host = {}) override;
  Status CopyBatch(hal::Ticket ticket, std::span<const hal::BatchedCopy> copies) override;
  Status Fill(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern, uint64_t count) override;
  Status Wait(hal::Ticket ticket, hal::Stream& other, hal::Ticket until) override;
  Status Nop(hal::Ticket ticket) override;
  [[nodiscard]] Result<std::unique_ptr<hal::Memory>> Allocate(hal::Ticket ticket, uint64_t bytes) override;
  Status Free(hal::Ticket ticket, std::unique_ptr<hal::Memory> memory) override;
  Status Signal() override { return {}; }
  [[nodiscard]] hal::Ticket Completed() const noexcept override { return core_->Completed(); }
  [[nodiscard]] Result<hal::Ticket> Resolve(hal::Ticket) override { return core_->Completed(); }
  Status Check() override { return {}; }
  [[nodiscard]] bool IsBusy(hal::Ticket) const override { return core_->IsDriven(); }

  /// CPU devices of one process can access each other's memory.
  Status CopyPeer(hal::Ticket ticket, const hal::PeerCopy& copy) override;
  Status CopyStrided(hal::Ticket ticket, std::byte* dst, const std::byte* src, uint32_t element_bytes,
                     std::span<const hal::StridedAxis> axes) override;
  Status CopyArray(hal::Ticket ticket, const hal::ArrayCopy& copy) override;
  Status FillStrided(hal::Ticket ticket, std::byte* dst, uint32_t element_bytes, uint64_t pattern,
                     std::span<const hal::StridedAxis> axes) override;
  Status CopyPageable(std::byte* dst, const std::byte* src, uint64_t bytes) override;
  Status Record(hal::Ticket ticket, hal::EventHandle& event_handle) override;
  Status WaitEvent(hal::Ticket ticket, hal::EventHandle& event_handle) override;
  /// An address, like a driver's handle, so that no stream of another backend has the same value.
  [[nodiscard]] uint64_t NativeHandle() const override { return reinterpret_cast<uintptr_t>(core_.get()); }

 private:
  Status LaunchCooperative(hal::Ticket ticket, const hal::LaunchRequest& request);
  [[nodiscard]] std::shared_ptr<LaunchItem> MakeLaunchItem(const hal::LaunchRequest& request) const;

  const std::shared_ptr<StreamCore> core_;
  const std::shared_ptr<Heap> heap_;
  const std::shared_ptr<BlockThreads> threads_;
  const std::shared_ptr<const CpuPartition> partition_;  // Null: the whole device.
  const GridLimits grid_limits_;                         // Limits of child launches.
  uint32_t most_cooperative_blocks_ = 0;                 // Blocks of the largest cooperative launch. Thread: channel.
};

}  // namespace millrace::cpu
