#include "cpu/grid_call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/kernel_run.h"
#include "cpu/race_detector.h"

namespace millrace::cpu {
namespace {

constexpr size_t kSharedAlignment = 256;

// Of each axis in the report of a thread. A block has at most 1024 threads.
constexpr uint32_t kPositionBits = 10;

uint32_t PositionOf(const unsigned (&thread)[3]) {
  return thread[0] | thread[1] << kPositionBits | thread[2] << 2 * kPositionBits;
}

// Dynamic shared memory of the blocks that a thread runs, one after the other.
thread_local GuardedPages shared_pages;

// An image reads the counter with its compiler's atomic functions.
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(unsigned long long));

void WaitForGrid(void* barrier) {
  const KernelPause pause;
  static_cast<GridBarrier*>(barrier)->Wait();
}

constexpr size_t WordsOf(size_t bytes) {
  return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/// A parameter that the image does not take has one, too.
size_t WordsOf(const hal::LaunchRequest& request) {
  size_t words = request.params.size();
  for (const hal::WideParam& wide : request.wide) words += WordsOf(wide.bytes) - 1;
  return words;
}

}  // namespace

GridCall::GridCall(const hal::LaunchRequest& request)
    : image_(static_cast<const CpuKernel*>(request.kernel)->image()),
      function_(static_cast<const CpuKernel*>(request.kernel)->function()),
      plan_(static_cast<const CpuKernel*>(request.kernel)->call().plan),
      is_bounded_(static_cast<const CpuKernel*>(request.kernel)->is_bounded()),
      is_long_(static_cast<const CpuKernel*>(request.kernel)->call().is_long),
      kernel_(request.kernel_id),
      values_(WordsOf(request)),
      params_(request.params.size()) {
  const std::vector<uint32_t>& sizes = static_cast<const CpuKernel*>(request.kernel)->param_bytes();
  uint64_t* next = values_.data();
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::memcpy(next, request.params[i], sizes[i]);
    params_[i] = next;
    next += WordsOf(sizes[i]);
  }
  launch_ = {.params = params_.data(),
             .grid = {request.grid.x, request.grid.y, request.grid.z},
             .block = {request.block.x, request.block.y, request.block.z},
             .shared_bytes = request.shared_bytes,
             .spin = &KernelRun::Spin,
             .fail_shuffle = &KernelRun::FailShuffle,
             .find_spaces = &KernelRun::FindSpaces,
             .is_on_stacks = &KernelRun::IsOnStacks,
             .take_stacks = &KernelRun::TakeStacks};
  if (plan_ == nullptr) return;
  std::ranges::copy(static_cast<const CpuKernel*>(request.kernel)->call().grid, launch_.grid);
}

GridCall::GridCall(const GridCall& parent, const MrChild& child)
    : image_(parent.image_), function_(child.entry), is_bounded_(false), kernel_(parent.kernel_), params_(child.count) {
  size_t words = 0;
  for (unsigned i = 0; i < child.count; ++i) words += WordsOf(child.sizes[i]);
  values_.resize(words);
  uint64_t* next = values_.data();
  for (unsigned i = 0; i < child.count; ++i) {
    std::memcpy(next, child.params[i], child.sizes[i]);
    params_[i] = next;
    next += WordsOf(child.sizes[i]);
  }
  launch_ = {.params = params_.data(),
             .grid = {child.grid[0], child.grid[1], child.grid[2]},
             .block = {child.block[0], child.block[1], child.block[2]},
             .shared_bytes = static_cast<unsigned>(child.shared_bytes),
             .spin = &KernelRun::Spin,
             .fail_shuffle = &KernelRun::FailShuffle,
             .find_spaces = &KernelRun::FindSpaces,
             .is_on_stacks = &KernelRun::IsOnStacks,
             .take_stacks = &KernelRun::TakeStacks};
}

void GridCall::RunBlocks(uint64_t first, uint64_t end, LaunchFault& fault, const RunOfBlocks& of) const {
  if (fault.IsNoted()) return;
  KernelRun run(image_->variables());
  MrLaunch launch = launch_;
  launch.run = &run;
  void* const of_library[] = {plan_.get(), const_cast<void**>(params_.data())};
  if (plan_ != nullptr) launch.params = of_library;
  launch.block_now = first;
  launch.launcher = of.launcher;
  launch.last_kept = reinterpret_cast<const unsigned long long*>(of.cancellation.last_kept);
  launch.ticket = of.cancellation.ticket;
  launch.dynamic_shared = reinterpret_cast<char*>(shared_pages.Reserve(launch.shared_bytes, kSharedAlignment));
  MR_CHECK(launch.dynamic_shared != nullptr || launch.shared_bytes == 0);  // A block has at most 227 KiB.
  if (of.barrier != nullptr) {
    launch.wait_for_grid = &WaitForGrid;
    launch.grid_barrier = of.barrier;
  }
  std::optional<RaceDetector> races;
  if (image_->race_base() != 0) launch.races = &races.emplace(run, *image_, launch);
  KernelExit exit = run.Call(function_, launch, first, end);
  if (exit.fault == KernelFault::kAddress && shared_pages.Contains(exit.detail)) {
    exit = {.fault = KernelFault::kShared, .detail = launch.shared_bytes};
  } else {
    FindStray(exit);
  }
  if (exit.fault == KernelFault::kNone) return;
  if (exit.fault == KernelFault::kRace) exit.race = *races->found();
  const uint64_t block = launch.block_now;
  const auto [columns, rows, layers] = launch.grid;
  fault.Note(exit,
             {static_cast<uint32_t>(block % columns), static_cast<uint32_t>(block / columns % rows),
              static_cast<uint32_t>(block / columns / rows % layers)},
             exit.is_found_late ? 0 : launch.blocks_now);
}

void GridCall::FindStray(KernelExit& exit) const {
  const std::optional<StrayByte> stray =
      exit.fault == KernelFault::kAddress ? Heap::FindStrayAccess(exit.detail, words()) : Heap::FindStrayWrite(words());
  // The kernel was stopped before it changed other memory than arrays, so only the launch fails.
  if (stray) exit = {.fault = KernelFault::kGuard, .is_found_late = exit.fault == KernelFault::kNone, .stray = *stray};
}

std::optional<hal::KernelFailure> GridCall::FailureOf(const LaunchFault& fault) const {
  if (!fault.IsNoted()) return std::nullopt;
  Status status = LosesDevice(fault.fault())
                      ? Status(StatusCode::kDeviceLost, "a kernel accessed unmapped memory or trapped")
                      : Status(StatusCode::kLaunchFailed, "a kernel exceeded the memory or the stack of its threads");
  protocol::FaultSlot report = fault.Report();
  if (fault.fault() == KernelFault::kGuard) {
    status = Status(StatusCode::kLaunchFailed, "a kernel accessed memory outside an array");
    DescribeStray(fault.stray(), report);
  }
  if (fault.fault() == KernelFault::kRace) {
    status = Status(StatusCode::kLaunchFailed, "two threads of a block raced for shared memory");
    DescribeRace(fault.race(), report);
  }
  if (fault.fault() == KernelFault::kShuffle) {
    status = Status(StatusCode::kLaunchFailed, "threads of a tile called shfl with different source ranks");
    DescribeShuffle(fault.shuffle(), report);
  }
  return hal::KernelFailure{.status = status, .kernel = kernel_, .report = report};
}

void GridCall::DescribeStray(const StrayByte& stray, protocol::FaultSlot& report) const {
  report.index = stray.byte;
  const auto [parameter, offset] = PointerTo(stray.array);
  report.thread_x = parameter;
  report.places = offset;
  report.thread_y = static_cast<uint32_t>(stray.array.bytes);
  report.thread_z = static_cast<uint32_t>(stray.array.bytes >> 32);
}

void GridCall::DescribeShuffle(const MrShuffle& shuffle, protocol::FaultSlot& report) {
  const auto& [first, second] = shuffle.calls;
  report.index = first.line;
  report.thread_x = PositionOf(first.thread);
  report.thread_y = PositionOf(second.thread);
  report.thread_z = second.line;
  report.places = first.source | uint64_t{second.source} << 32;
}

void GridCall::DescribeRace(const RaceReport& race, protocol::FaultSlot& report) const {
  const auto position = [this](uint32_t thread) {
    if (thread == RaceShadow::kEveryThread) return kEveryThreadPosition;
    const auto [width, height, depth] = launch_.block;
    return PositionOf({thread % width, thread / width % height, thread / width / height});
  };
  const auto kind = [](const RaceAccess& access) {
    return (access.is_write ? mr_race_write : 0) | (access.is_atomic ? mr_race_atomic : 0);
  };
  report.index = static_cast<int64_t>(race.byte);
  report.thread_x = position(race.first.thread);
  report.thread_y = position(race.second.thread);
  report.thread_z = kind(race.first) | kind(race.second) << 2 | (race.is_dynamic ? 1u << 4 : 0);
  report.places = race.first.place | uint64_t{race.second.place} << 32;
}

GridCall::PointerPlace GridCall::PointerTo(const ArrayPlace& array) const {
  for (size_t n = 0; n < words().size(); ++n) {
    if (!array.IsPointedTo(words()[n])) continue;
    // The last parameter that begins here or before. Parameters that the image does not take are null.
    uint32_t parameter = 0;
    for (uint32_t i = 0; i < params_.size(); ++i) {
      if (params_[i] != nullptr && params_[i] <= &words()[n]) parameter = i;
    }
    const uint64_t* const begin =
        params_[parameter] == nullptr ? words().data() : static_cast<const uint64_t*>(params_[parameter]);
    return {.parameter = parameter, .offset = static_cast<uint32_t>((&words()[n] - begin) * sizeof(uint64_t))};
  }
  return {.parameter = kNoParameter, .offset = 0};
}

uint64_t GridCall::block_count() const {
  return Product(launch_.grid);
}

uint64_t GridCall::block_threads() const {
  return Product(launch_.block);
}

}  // namespace millrace::cpu
