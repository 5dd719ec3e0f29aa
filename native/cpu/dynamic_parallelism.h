// Dynamic parallelism: the tree of grids of a launch whose kernels launch kernels, and the order in which they run.
//
// A grid has finished when its blocks, all grids that they launched and then its tail launches, one by one, have
// finished. The launch's ticket completes with its first grid. The launches of a run of blocks are adopted when the run
// ends: none of them runs before that, and a chain of any length costs no stack. Ready grids wait on a stack, so that
// the newest runs first and few wait; any number of pool threads take them from there. A grid that only waits for its
// last tail launch is destroyed: the tail replaces it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cpu/launch_item.h"
#include "cpu/shim/launch_abi.h"
#include "cpu/thread_pool.h"

namespace millrace::cpu {

/// Most unfinished grids of one launch. CUDA's default for cudaLimitDevRuntimePendingLaunchCount is 2048, and users can
/// raise it; a grid takes about 600 bytes here.
inline constexpr uint32_t kMaxPendingLaunches = 32768;

/// Why a launch from a kernel was refused: MrRefused::what, and FaultSlot::dimension of its report.
enum class Refusal : unsigned { kPending, kThreads, kBlock, kGrid, kShared, kSharedArgument, kLocalArgument };

class LaunchTreeGrid;

/// Runs on several threads at once: each run takes grids until there are none. Thread: backend.
class LaunchTree final : public Runnable, public std::enable_shared_from_this<LaunchTree> {
 public:
  LaunchTree(std::shared_ptr<ThreadPool> pool, const GridLimits& limits, protocol::FaultSlot* slot,
             uint32_t* fault_word, int32_t priority);

  void Run() override;
  /// The first grid's blocks have finished. True if all has; if not, the thread that ends the rest runs `stream`.
  [[nodiscard]] bool AwaitRest(const std::shared_ptr<LaunchTreeGrid>& first, std::shared_ptr<Runnable> stream);
  /// Adopts the launches of blocks of `parent`, in order. `mine`: the number of grids that the calling thread takes
  /// next, if it is a worker.
  void Adopt(const std::shared_ptr<LaunchTreeGrid>& parent, std::vector<std::shared_ptr<LaunchTreeGrid>> launched,
             uint32_t mine);
  /// Runs grids on the calling thread while many are pending.
  void Relieve();
  /// Counts one more grid, which the caller then adopts. False: there are too many.
  [[nodiscard]] bool Count();
  void Report(const MrRefused& refused);
  [[nodiscard]] const GridLimits& limits() const { return limits_; }
  /// Shared by all its grids.
  [[nodiscard]] LaunchFault& fault() { return fault_; }

 private:
  class Ending;
  using GridPtr = std::shared_ptr<LaunchTreeGrid>;

  /// A grid's blocks have finished, so more grids may be ready. Returns the stream to run if it was the last grid.
  [[nodiscard]] std::shared_ptr<Runnable> End(GridPtr grid, uint32_t mine);
  /// These need `mutex_`.
  [[nodiscard]] GridPtr TakeReady();
  void Settle(GridPtr grid);
  void AdoptOne(const GridPtr& parent, const GridPtr& child, LaunchTreeGrid*& last_of_null);
  [[nodiscard]] uint32_t Recruit(uint32_t mine);
  /// Without `mutex_`.
  void Call(uint32_t count);

  const std::shared_ptr<ThreadPool> pool_;
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
class LaunchTreeGrid final : public LaunchItem {
 public:
  /// The launch's first grid.
  LaunchTreeGrid(const hal::LaunchRequest& request, std::shared_ptr<LaunchTree> launch_tree);
  LaunchTreeGrid(const LaunchTreeGrid& parent, const MrChild& child);

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
  const uint64_t launched_on_ = mr_null_stream;
  const uint64_t launched_by_ = 0;  // The number of the block.
  std::atomic<uint64_t> next_stream_{mr_first_own_stream};

  // Guarded by the launch tree's mutex.
  std::shared_ptr<LaunchTreeGrid> parent_;  // Null: the first grid, or its replacement.
  uint64_t stream_ = mr_null_stream;        // The stream, if the parent created it.
  std::shared_ptr<LaunchTreeGrid> next_;    // The next grid on the same stream.
  uint64_t unfinished_parts_ = 1;           // Its blocks, and the grids that they launched.
  std::shared_ptr<LaunchTreeGrid> tails_;   // The first tail; next_ links the others.
  LaunchTreeGrid* last_tail_ = nullptr;
  std::unordered_map<uint64_t, LaunchTreeGrid*> last_on_;  // By stream that the grid created.
};

}  // namespace millrace::cpu
