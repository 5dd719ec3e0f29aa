// A launch whose kernels launch kernels: its grid, theirs, and in what order they run.
//
// A grid is over when its blocks are, all that they launched, and then, one after the other, what they launched for the
// end. The launch's ticket completes with its first grid. What a run of blocks launches is taken in when the run ends:
// nothing runs beside the thread that launched it, and a chain of launches of any length costs no stack. Grids that may
// run wait on a stack, so that what was launched last goes first and what waits stays little; any number of the pool's
// threads take them from there. A grid that only waits for its last tail is gone: the tail stands in its place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cpu/grid.h"
#include "cpu/launcher.h"
#include "cpu/pool.h"

namespace millrace::cpu {

/// Grids of one launch that were launched and are not over. CUDA's default for cudaLimitDevRuntimePendingLaunchCount is
/// 2048, which a program may raise; each takes some 600 bytes here.
inline constexpr uint32_t kMaxPendingLaunches = 32768;

class LaunchTreeGrid;

/// Runs on several threads at once: each run takes grids until there are none. Thread: backend.
class LaunchTree final : public Runnable, public std::enable_shared_from_this<LaunchTree> {
 public:
  LaunchTree(std::shared_ptr<Pool> pool, const GridLimits& limits, protocol::FaultSlot* slot, uint32_t* fault_word,
             int32_t priority);

  void Run() override;
  /// The first grid's blocks are over. Whether everything is; if not, `stream` is run by the thread that ends it.
  [[nodiscard]] bool AwaitRest(const std::shared_ptr<LaunchTreeGrid>& first, std::shared_ptr<Runnable> stream);
  /// Takes in what blocks of `parent` launched, in their order.
  /// `mine`: how many grids the calling thread takes next, if it is a worker.
  void Adopt(const std::shared_ptr<LaunchTreeGrid>& parent, std::vector<std::shared_ptr<LaunchTreeGrid>> launched,
             uint32_t mine);
  /// Runs grids on the calling thread while there are many.
  void Relieve();
  /// False: there are too many. The caller has one more to adopt.
  [[nodiscard]] bool Count();
  void Report(const CpuRefused& refused);
  [[nodiscard]] const GridLimits& limits() const { return limits_; }
  /// Of all its grids.
  [[nodiscard]] LaunchFault& fault() { return fault_; }

 private:
  class Ending;
  using GridPtr = std::shared_ptr<LaunchTreeGrid>;

  /// A grid's blocks are over; more may run. Gives the stream to run if that was the last.
  [[nodiscard]] std::shared_ptr<Runnable> End(GridPtr grid, uint32_t mine);
  /// These need `mutex_`.
  [[nodiscard]] GridPtr TakeReady();
  void Settle(GridPtr grid);
  void AdoptOne(const GridPtr& parent, const GridPtr& child, LaunchTreeGrid*& last_of_null);
  [[nodiscard]] uint32_t Recruit(uint32_t mine);
  /// Without it.
  void Call(uint32_t count);

  const std::shared_ptr<Pool> pool_;
  const GridLimits limits_;
  protocol::FaultSlot* const slot_;
  uint32_t* const fault_word_;
  std::atomic<uint32_t> pending_{0};
  LaunchFault fault_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<GridPtr> ready_;
  uint32_t workers_ = 0;
  bool has_first_ended_ = false;
  bool is_over_ = false;
  std::shared_ptr<Runnable> stream_;
};

/// A grid of a launch tree.
class LaunchTreeGrid final : public Grid {
 public:
  /// The first.
  LaunchTreeGrid(const hal::LaunchRequest& request, std::shared_ptr<LaunchTree> launch_tree);
  LaunchTreeGrid(const LaunchTreeGrid& parent, const CpuChild& child);

  [[nodiscard]] bool IsLight() const override { return false; }
  [[nodiscard]] bool IsOver(std::shared_ptr<Runnable> stream) override;
  [[nodiscard]] uint64_t NewStream() { return next_stream_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] const std::shared_ptr<LaunchTree>& launch_tree() const { return launch_tree_; }

 private:
  friend class LaunchTree;
  class Launcher;

  void RunBlocks(uint64_t first, uint64_t end) override;
  [[nodiscard]] const LaunchFault& fault() const override { return launch_tree_->fault(); }

  const std::shared_ptr<LaunchTree> launch_tree_;
  const bool is_launched_ = false;  // By a kernel.
  const uint64_t launched_on_ = kNullStream;
  const uint64_t launched_by_ = 0;  // The number of the block.
  std::atomic<uint64_t> next_stream_{kFirstOwnStream};

  // Guarded by the launch tree's mutex.
  std::shared_ptr<LaunchTreeGrid> parent_;  // Null: the launch's first, or what stands in its place.
  uint64_t stream_ = kNullStream;           // The parent's, if it is one of its own making.
  std::shared_ptr<LaunchTreeGrid> next_;    // On the same stream.
  uint64_t unfinished_parts_ = 1;           // Its blocks, and what they launched.
  std::shared_ptr<LaunchTreeGrid> tails_;   // The first, and by next_ the others.
  LaunchTreeGrid* last_tail_ = nullptr;
  std::unordered_map<uint64_t, LaunchTreeGrid*> last_on_;  // By stream of its own making.
};

}  // namespace millrace::cpu
