#include "cpu/dynamic_parallelism.h"

#include <algorithm>
#include <utility>

#include "cpu/grid_call.h"
#include "cpu/kernel_run.h"

namespace millrace::cpu {
namespace {

// From this count on, a thread that launches runs ready grids before it launches more.
constexpr uint32_t kManyPending = kMaxPendingLaunches / 4;
// FaultSlot::parameter of a report that a launch from a kernel was refused.
constexpr uint32_t kRefusedLaunch = 0xfffffffe;
// Set while a thread runs grids in Relieve: those grids must not call Relieve, whose recursion would have no bound.
thread_local bool is_relieving = false;

// The first axis that is zero or exceeds its limit; 3 when there is none.
uint32_t AxisBeyond(const unsigned (&dim)[3], const uint32_t (&limits)[3]) {
  uint32_t axis = 0;
  while (axis < 3 && dim[axis] > 0 && dim[axis] <= limits[axis]) ++axis;
  return axis;
}

}  // namespace

// Collects the launches of a run of blocks.
class LaunchTreeGrid::Launcher : public MrLauncher {
 public:
  explicit Launcher(LaunchTreeGrid& grid) : MrLauncher{&Launch, &MakeStream, {}}, grid_(grid) {}

  std::vector<std::shared_ptr<LaunchTreeGrid>> TakeLaunched() { return std::move(launched_); }
  void ReportRefused() {
    if (refused.error != 0) grid_.launch_tree_->Report(refused);
  }

 private:
  static unsigned long long MakeStream(MrLauncher* self) { return static_cast<Launcher*>(self)->grid_.NewStream(); }
  static void Launch(MrLauncher* self, const MrChild* child) {
    const KernelPause pause;
    static_cast<Launcher*>(self)->LaunchOne(*child);
  }

  void LaunchOne(const MrChild& child) {
    const GridLimits& limits = grid_.launch_tree_->limits();
    const uint64_t threads = Product(child.block);
    const uint64_t most = std::min(limits.threads, child.max_threads);
    const uint32_t block_axis = AxisBeyond(child.block, limits.block);
    const uint32_t grid_axis = AxisBeyond(child.grid, limits.grid);
    if (child.own_memory != mr_no_own_memory) {
      const bool is_shared = child.own_memory == mr_own_shared;
      Refuse(child, mr_invalid_value, is_shared ? Refusal::kSharedArgument : Refusal::kLocalArgument,
             child.own_argument, 0);
      // Undefined in CUDA, so programs do not ask for it: the host learns of it in any case.
      ReportRefused();
    } else if (threads > most) {
      Refuse(child, mr_invalid_configuration, Refusal::kThreads, threads, most);
    } else if (block_axis < 3) {
      Refuse(child, mr_invalid_configuration, Refusal::kBlock, child.block[block_axis], limits.block[block_axis]);
    } else if (grid_axis < 3) {
      Refuse(child, mr_invalid_configuration, Refusal::kGrid, child.grid[grid_axis], limits.grid[grid_axis]);
    } else if (child.shared_bytes > limits.shared_bytes) {
      Refuse(child, mr_invalid_value, Refusal::kShared, child.shared_bytes, limits.shared_bytes);
    } else if (!grid_.launch_tree_->Count()) {
      Refuse(child, mr_pending_count_exceeded, Refusal::kPending, uint64_t{kMaxPendingLaunches} + 1,
             kMaxPendingLaunches);
    } else {
      launched_.push_back(std::make_shared<LaunchTreeGrid>(grid_, child));
    }
  }

  // The earlier refusal belongs to a thread that did not read or clear it: report it now.
  void Refuse(const MrChild& child, int error, Refusal what, uint64_t value, uint64_t limit) {
    ReportRefused();
    refused = {error,
               static_cast<unsigned>(what),
               value,
               limit,
               {child.from_block[0], child.from_block[1], child.from_block[2]},
               {child.from_thread[0], child.from_thread[1], child.from_thread[2]}};
  }

  LaunchTreeGrid& grid_;
  std::vector<std::shared_ptr<LaunchTreeGrid>> launched_;
};

LaunchTreeGrid::LaunchTreeGrid(const hal::LaunchRequest& request, std::shared_ptr<LaunchTree> launch_tree)
    : LaunchItem(request, launch_tree->priority()), launch_tree_(std::move(launch_tree)) {}

LaunchTreeGrid::LaunchTreeGrid(const LaunchTreeGrid& parent, const MrChild& child)
    : LaunchItem(GridCall(parent.call(), child), parent.priority()),
      launch_tree_(parent.launch_tree_),
      is_launched_(true),
      launched_on_(child.stream),
      launched_by_((uint64_t{child.from_block[2]} * parent.call().launch().grid[1] + child.from_block[1]) *
                       parent.call().launch().grid[0] +
                   child.from_block[0]) {
  SetCancellation(parent.cancellation());
}

bool LaunchTreeGrid::IsOver(std::shared_ptr<Runnable> stream) {
  return launch_tree_->AwaitRest(std::static_pointer_cast<LaunchTreeGrid>(shared_from_this()), std::move(stream));
}

void LaunchTreeGrid::RunBlocks(uint64_t first, uint64_t end) {
  Launcher launcher(*this);
  // A chain of small grids stops between two of them, also when its image does not look before each block.
  if (!cancellation().IsRequested())
    call().RunBlocks(first, end, launch_tree_->fault(), {.launcher = &launcher, .cancellation = cancellation()});
  launcher.ReportRefused();
  launch_tree_->Adopt(std::static_pointer_cast<LaunchTreeGrid>(shared_from_this()), launcher.TakeLaunched(),
                      end == block_count() ? 1 : 0);
  launch_tree_->Relieve();
}

// Runs when another thread finished the blocks of a grid that a worker began.
class LaunchTree::Ending final : public Runnable {
 public:
  Ending(std::shared_ptr<LaunchTree> launch_tree, GridPtr grid)
      : Runnable(launch_tree->priority()), launch_tree_(std::move(launch_tree)), grid_(std::move(grid)) {}
  void Run() override {
    // The grid keeps this object alive.
    if (const auto stream = launch_tree_->End(std::exchange(grid_, nullptr), mine_)) stream->Run();
  }
  /// The worker itself finished the blocks.
  void RunHere() {
    mine_ = 1;
    Run();
  }

 private:
  const std::shared_ptr<LaunchTree> launch_tree_;
  GridPtr grid_;
  uint32_t mine_ = 0;
};

LaunchTree::LaunchTree(std::shared_ptr<ThreadPool> pool, const GridLimits& limits, protocol::FaultSlot* slot,
                       uint32_t* fault_word, int32_t priority)
    : Runnable(priority), pool_(std::move(pool)), limits_(limits), slot_(slot), fault_word_(fault_word) {}

void LaunchTree::Run() {
  while (true) {
    GridPtr grid;
    {
      std::lock_guard lock(mutex_);
      grid = TakeReady();
      if (grid == nullptr) {
        --workers_;
        return;
      }
    }
    const auto ending = std::make_shared<Ending>(shared_from_this(), grid);
    if (grid->RunOn(*pool_, ending)) ending->RunHere();
    grid.reset();
    if (pool_->HasRival(priority())) return pool_->PutBack(shared_from_this());
  }
}

bool LaunchTree::AwaitRest(const GridPtr& first, std::shared_ptr<Runnable> stream) {
  uint32_t called;
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(has_first_ended_, true)) Settle(first);
    if (is_over_) return true;
    stream_ = std::move(stream);
    called = Recruit(0);
  }
  // The calling thread looks for work next.
  if (called > 0) pool_->PutBack(shared_from_this());
  if (called > 1) Call(called - 1);
  return false;
}

void LaunchTree::Adopt(const GridPtr& parent, std::vector<GridPtr> launched, uint32_t mine) {
  if (launched.empty()) return;
  uint32_t called;
  {
    std::lock_guard lock(mutex_);
    LaunchTreeGrid* last_of_null = nullptr;
    for (const GridPtr& child : launched) AdoptOne(parent, child, last_of_null);
    called = Recruit(mine);
  }
  Call(called);
}

// Blocks run one after the other, so the launches of one block are adjacent.
void LaunchTree::AdoptOne(const GridPtr& parent, const GridPtr& child, LaunchTreeGrid*& last_of_null) {
  if (child->launched_on_ == mr_tail_stream) {
    if (parent->tails_ == nullptr) {
      parent->tails_ = child;
    } else {
      parent->last_tail_->next_ = child;
    }
    parent->last_tail_ = child.get();
    return;
  }
  child->parent_ = parent;
  ++parent->unfinished_parts_;
  LaunchTreeGrid* before = nullptr;
  if (child->launched_on_ >= mr_first_own_stream) {
    child->stream_ = child->launched_on_;
    before = std::exchange(parent->last_on_[child->stream_], child.get());
  } else if (child->launched_on_ != mr_fire_and_forget_stream) {
    if (last_of_null != nullptr && last_of_null->launched_by_ == child->launched_by_) before = last_of_null;
    last_of_null = child.get();
  }
  if (before != nullptr) {
    before->next_ = child;
  } else {
    ready_.push_back(child);
  }
}

void LaunchTree::Relieve() {
  if (is_relieving || pending_.load(std::memory_order_relaxed) < kManyPending) return;
  is_relieving = true;
  while (pending_.load(std::memory_order_relaxed) >= kManyPending) {
    GridPtr grid;
    {
      std::lock_guard lock(mutex_);
      grid = TakeReady();
    }
    if (grid == nullptr) break;
    grid->RunHere();
    // The launching grid is not finished, so the launch tree is not either.
    MR_CHECK(End(std::move(grid), 1) == nullptr);
  }
  is_relieving = false;
}

bool LaunchTree::Count() {
  if (pending_.fetch_add(1, std::memory_order_relaxed) < kMaxPendingLaunches) return true;
  pending_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// A launch reports only its first refusal, as with out-of-bounds accesses.
void LaunchTree::Report(const MrRefused& refused) {
  std::atomic_ref state(slot_->state);
  uint32_t free = 0;
  if (!state.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) return;
  slot_->parameter = kRefusedLaunch;
  slot_->dimension = refused.what;
  slot_->limit = static_cast<uint32_t>(std::min<uint64_t>(refused.limit, UINT32_MAX));
  slot_->index = static_cast<int64_t>(std::min<uint64_t>(refused.value, INT64_MAX));
  slot_->block_x = refused.block[0];
  slot_->block_y = refused.block[1];
  slot_->block_z = refused.block[2];
  slot_->thread_x = refused.thread[0];
  slot_->thread_y = refused.thread[1];
  slot_->thread_z = refused.thread[2];
  state.store(hal::kFaultWritten, std::memory_order_release);
  std::atomic_ref(*fault_word_).store(1, std::memory_order_release);
}

std::shared_ptr<Runnable> LaunchTree::End(GridPtr grid, uint32_t mine) {
  uint32_t called;
  std::shared_ptr<Runnable> stream;
  {
    std::lock_guard lock(mutex_);
    Settle(std::move(grid));
    called = Recruit(mine);
    if (is_over_) stream = std::exchange(stream_, nullptr);
  }
  Call(called);
  return stream;
}

LaunchTree::GridPtr LaunchTree::TakeReady() {
  if (ready_.empty()) return nullptr;
  if (ScheduleFuzzer* fuzzer = pool_->fuzzer()) {
    std::swap(ready_[fuzzer->Below(static_cast<uint32_t>(ready_.size()))], ready_.back());
  }
  GridPtr grid = std::move(ready_.back());
  ready_.pop_back();
  return grid;
}

// One part of `grid` has finished: its blocks, or a grid that they launched. That may finish the grid and its parent.
void LaunchTree::Settle(GridPtr grid) {
  while (--grid->unfinished_parts_ == 0) {
    if (grid->tails_ != nullptr) {
      GridPtr tail = std::move(grid->tails_);
      grid->tails_ = std::move(tail->next_);
      if (grid->tails_ != nullptr) {
        grid->unfinished_parts_ = 1;
        tail->parent_ = grid;
      } else {
        // The tail replaces its parent, so that a chain of tail launches can have any length.
        tail->parent_ = std::move(grid->parent_);
        tail->next_ = std::move(grid->next_);
        tail->stream_ = grid->stream_;
        if (tail->stream_ != mr_null_stream) {
          LaunchTreeGrid*& last = tail->parent_->last_on_[tail->stream_];
          if (last == grid.get()) last = tail.get();
        }
        if (grid->is_launched_) pending_.fetch_sub(1, std::memory_order_relaxed);
      }
      ready_.push_back(std::move(tail));
      return;
    }
    const GridPtr parent = std::move(grid->parent_);
    if (grid->next_ != nullptr) {
      ready_.push_back(std::move(grid->next_));
    } else if (grid->stream_ != mr_null_stream) {
      parent->last_on_.erase(grid->stream_);
    }
    if (grid->is_launched_) pending_.fetch_sub(1, std::memory_order_relaxed);
    if (parent == nullptr) {
      is_over_ = true;
      return;
    }
    grid = parent;
  }
}

// The number of additional threads that should take grids; they count as workers from now on.
uint32_t LaunchTree::Recruit(uint32_t mine) {
  const uint32_t idle = pool_->thread_count() - std::min(workers_, pool_->thread_count());
  const auto ready = static_cast<uint32_t>(ready_.size());
  const uint32_t count = std::min(idle, ready - std::min(mine, ready));
  workers_ += count;
  return count;
}

void LaunchTree::Call(uint32_t count) {
  for (; count > 0; --count) pool_->Schedule(shared_from_this());
}

}  // namespace millrace::cpu
