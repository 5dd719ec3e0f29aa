#include "cuda/partitions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace millrace::cuda {
namespace {

constexpr const char* kNote = "dividing a GPU";

/// The multiprocessors of a GPU in groups of the same size, and those that are left over.
struct Groups {
  uint32_t unit = 0;
  std::vector<CUdevResource> groups;
  CUdevResource left{};

  [[nodiscard]] uint32_t All() const { return static_cast<uint32_t>(groups.size()) * unit + LeftOver(); }
  [[nodiscard]] uint32_t LeftOver() const { return left.type == CU_DEV_RESOURCE_TYPE_SM ? left.sm.smCount : 0; }
};

/// A range of groups. `has_left`: and what is left over.
struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
  bool has_left = false;

  [[nodiscard]] uint32_t Multiprocessors(const Groups& of) const {
    return count * of.unit + (has_left ? of.LeftOver() : 0);
  }
};

Status Check(Context& context, CUresult code) {
  if (code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_NOT_SUPPORTED)
    return {StatusCode::kUnsupported, "green contexts: the driver must be that of CUDA 12.5 or newer",
            static_cast<int32_t>(code)};
  return context.Check(code, kNote);
}

Result<Groups> Split(Context& context) {
  CUdevResource all{};
  MR_TRY(Check(context, Cuda().cuDeviceGetDevResource(context.device(), &all, CU_DEV_RESOURCE_TYPE_SM)));
  unsigned int count = 0;
  const unsigned int least = all.sm.minSmPartitionSize;
  MR_TRY(Check(context, Cuda().cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, least)));
  Groups split;
  split.groups.resize(count);
  MR_TRY(Check(context, Cuda().cuDevSmResourceSplitByCount(split.groups.data(), &count, &all, &split.left, 0, least)));
  split.groups.resize(count);
  if (split.groups.empty()) return Status(StatusCode::kUnsupported, "dividing this GPU");
  split.unit = split.groups.front().sm.smCount;
  return split;
}

/// Empty if the shares, in whole groups, are more than there is.
std::vector<Range> Assign(const Groups& of, std::span<const uint32_t> shares) {
  const auto groups = static_cast<uint32_t>(of.groups.size());
  uint32_t wanted = 0;
  for (const uint32_t share : shares) wanted += (share + of.unit - 1) / of.unit;
  std::vector<Range> ranges;
  uint32_t next = 0;
  bool has_left = of.LeftOver() > 0;
  for (const uint32_t share : shares) {
    const uint32_t whole = share == 0 ? groups - std::min(groups, wanted) : (share + of.unit - 1) / of.unit;
    Range range{next, std::min(whole, groups - next)};
    // What is left over belongs to the rest, and to a share that needs it.
    range.has_left = has_left && (share == 0 || range.Multiprocessors(of) < share);
    const uint32_t given = range.Multiprocessors(of);
    if (given == 0 || given < share) return {};
    has_left = has_left && !range.has_left;
    next += range.count;
    ranges.push_back(range);
  }
  return ranges;
}

struct Green {
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
};

/// Green contexts are kept for the process and used again, as primary contexts are, with their streams.
Result<Green> GreenContext(Context& context, Groups& of, const Range& range) {
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, bool>;
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::map<Key, Green>;
  const std::lock_guard lock(*mutex);
  Green& green = (*kept)[{context.ordinal(), range.first, range.count, range.has_left}];
  if (green.context != nullptr) return green;
  std::vector<CUdevResource> resources(of.groups.begin() + range.first, of.groups.begin() + range.first + range.count);
  if (range.has_left) resources.push_back(of.left);
  CUdevResourceDesc description = nullptr;
  MR_TRY(Check(context, Cuda().cuDevResourceGenerateDesc(&description, resources.data(),
                                                         static_cast<unsigned int>(resources.size()))));
  MR_TRY(Check(context,
               Cuda().cuGreenCtxCreate(&green.green, description, context.device(), CU_GREEN_CTX_DEFAULT_STREAM)));
  MR_TRY(Check(context, Cuda().cuCtxFromGreenCtx(&green.context, green.green)));
  return green;
}

}  // namespace

Status Partition::CheckHolds(hal::Kernel& kernel, const hal::Dim3& grid, const hal::Dim3& block,
                             uint32_t shared_bytes) const {
  Result<uint64_t> most = kernel.MaxCooperativeBlocks(block.x * block.y * block.z, shared_bytes);
  MR_TRY(most.status());
  if (uint64_t{grid.x} * grid.y * grid.z <= most.value() / of * multiprocessors) return {};
  return {StatusCode::kLaunchFailed, "launching more cooperative blocks than the stream's partition runs at a time"};
}

Result<hal::Division> DivideGpu(Context& context, std::span<const uint32_t> shares, Partitions& into) {
  MR_TRY(into.CheckNone());
  Result<Groups> split = Split(context);
  MR_TRY(split.status());
  Groups& groups = split.value();
  std::vector<Partition> made;
  for (const Range& range : Assign(groups, shares)) {
    Result<Green> green = GreenContext(context, groups, range);
    MR_TRY(green.status());
    const auto& [handle, own] = green.value();
    made.push_back({handle, own, range.Multiprocessors(groups), groups.All()});
  }
  hal::Division division{.unit = groups.unit};
  for (const Partition& each : made)
    division.partitions.push_back({into.Add(std::make_shared<const Partition>(each)), each.multiprocessors});
  return division;
}

}  // namespace millrace::cuda
