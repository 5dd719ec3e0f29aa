#include "cuda/strided.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "cuda/kernels/fill64.ptx.gen.h"
#include "cuda/kernels/strided.ptx.gen.h"

namespace millrace::cuda {

namespace {

static_assert(kStridedAxes == protocol::kMaxRank);

/// The axes of a plan during merging, fastest first.
struct Axes {
  std::array<hal::StridedAxis, kStridedAxes> list;
  unsigned rank = 0;

  [[nodiscard]] std::span<hal::StridedAxis> span() { return {list.data(), rank}; }
};

uint64_t Magnitude(int64_t stride) {
  return stride < 0 ? 0 - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
}

Axes Order(StridedPlan& plan, std::span<const hal::StridedAxis> axes) {
  Axes ordered;
  for (hal::StridedAxis axis : axes) {
    if (axis.extent == 1) continue;
    if (plan.src == 0) axis.src_stride = 0;  // A fill has no source.
    if (axis.dst_stride < 0) {
      // Reverses the axis, so that it may merge with a forward one.
      plan.dst += static_cast<uint64_t>(axis.dst_stride) * (axis.extent - 1);
      plan.src += static_cast<uint64_t>(axis.src_stride) * (axis.extent - 1);
      axis.dst_stride = -axis.dst_stride;
      axis.src_stride = -axis.src_stride;
    }
    ordered.list[ordered.rank++] = axis;
  }
  std::ranges::sort(ordered.span(), [](const hal::StridedAxis& a, const hal::StridedAxis& b) {
    if (a.dst_stride != b.dst_stride) return a.dst_stride < b.dst_stride;
    return Magnitude(a.src_stride) < Magnitude(b.src_stride);
  });
  return ordered;
}

/// Merges each axis into the one before it where they are contiguous.
void Merge(Axes& axes, bool is_copy) {
  unsigned kept = 0;
  for (const hal::StridedAxis& axis : axes.span()) {
    if (kept > 0) {
      hal::StridedAxis& inner = axes.list[kept - 1];
      const auto extent = static_cast<int64_t>(inner.extent);
      if (axis.dst_stride == inner.dst_stride * extent && (!is_copy || axis.src_stride == inner.src_stride * extent)) {
        inner.extent *= axis.extent;
        continue;
      }
    }
    axes.list[kept++] = axis;
  }
  axes.rank = kept;
}

/// Widens the elements if the innermost axis is contiguous on both sides.
void Widen(StridedPlan& plan, Axes& axes, bool is_copy) {
  if (axes.rank == 0) return;
  hal::StridedAxis& run = axes.list[0];
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  if (run.dst_stride != bytes || (is_copy && run.src_stride != bytes)) return;
  // The common alignment of the addresses and all strides.
  uint64_t steps = plan.dst | run.extent * plan.element_bytes | (is_copy ? plan.src : 0);
  for (unsigned i = 1; i < axes.rank; ++i) {
    steps |= Magnitude(axes.list[i].dst_stride) | (is_copy ? Magnitude(axes.list[i].src_stride) : 0);
  }
  const uint64_t widest = is_copy ? 16 : 8;
  const auto wide = static_cast<unsigned>(std::min(widest, uint64_t{1} << std::countr_zero(steps | widest)));
  if (wide <= plan.element_bytes) return;
  run.extent = run.extent * plan.element_bytes / wide;
  run.dst_stride = run.src_stride = wide;
  plan.element_bytes = wide;
  if (run.extent > 1) return;
  std::copy(axes.list.begin() + 1, axes.list.begin() + axes.rank, axes.list.begin());
  --axes.rank;
}

uint64_t Repeat(uint64_t pattern, uint32_t element_bytes) {
  for (uint32_t bits = 8 * element_bytes; bits < 64; bits *= 2) {
    pattern &= (uint64_t{1} << bits) - 1;
    pattern |= pattern << bits;
  }
  return pattern;
}

constexpr uint64_t kNarrowElements = uint64_t{1} << 31;

}  // namespace

Result<BuiltIns> BuiltIns::Load(const std::shared_ptr<Context>& context) {
  using Kernels = std::vector<std::shared_ptr<Kernel>>;
  const auto load = [&](std::span<const char> ptx, std::initializer_list<std::string> names) -> Result<Kernels> {
    auto loaded = Kernel::LoadAll(context, std::as_bytes(ptx.first(ptx.size() - 1)), {names.begin(), names.size()});
    if (loaded.status().code() == StatusCode::kCompile) return Kernels(names.size());
    return loaded;
  };
  Result<Kernels> fill = load(kFill64Ptx, {"millrace_fill64"});
  MR_TRY(fill.status());
  Result<Kernels> strided =
      load(kStridedPtx, {"millrace_copy_narrow", "millrace_copy_wide", "millrace_fill_narrow", "millrace_fill_wide"});
  MR_TRY(strided.status());
  const Kernels& all = strided.value();
  return BuiltIns{fill.value()[0], all[0], all[1], all[2], all[3]};
}

StridedPlan PlanStrided(std::byte* dst, const std::byte* src, uint32_t element_bytes, uint64_t pattern,
                        std::span<const hal::StridedAxis> given) {
  MR_CHECK(given.size() <= kStridedAxes);
  const bool is_copy = src != nullptr;
  StridedPlan plan;
  plan.dst = reinterpret_cast<uintptr_t>(dst);
  plan.src = reinterpret_cast<uintptr_t>(src);
  plan.element_bytes = element_bytes;
  plan.pattern = Repeat(pattern, element_bytes);

  Axes axes = Order(plan, given);
  Merge(axes, is_copy);
  Widen(plan, axes, is_copy);
  plan.rank = axes.rank;
  for (unsigned i = 0; i < axes.rank; ++i) {
    const hal::StridedAxis& axis = axes.list[i];
    plan.count *= axis.extent;
    plan.extents[i] = axis.extent;
    plan.dst_strides[i] = axis.dst_stride;
    plan.src_strides[i] = axis.src_stride;
    if (axis.extent >= kNarrowElements) continue;
    plan.shifts[i] = static_cast<unsigned>(std::bit_width(axis.extent - 1));
    plan.factors[i] = static_cast<unsigned>((((uint64_t{1} << plan.shifts[i]) - axis.extent) << 32) / axis.extent + 1);
  }
  return plan;
}

bool IsRun(const StridedPlan& plan) {
  const auto bytes = static_cast<int64_t>(plan.element_bytes);
  return plan.rank == 0 ||
         (plan.rank == 1 && plan.dst_strides[0] == bytes && (plan.src == 0 || plan.src_strides[0] == bytes));
}

namespace {

// Enough blocks for any device; the kernels loop over the rest.
BuiltInLaunch ShapeOf(const std::shared_ptr<Kernel>& kernel, uint64_t count) {
  constexpr uint64_t kBlock = 256;
  constexpr uint64_t kMostBlocks = 16384;
  return {kernel.get(), static_cast<unsigned int>(std::min((count + kBlock - 1) / kBlock, kMostBlocks)), kBlock};
}

}  // namespace

BuiltInLaunch Fill64Launch(const BuiltIns& kernels, uint64_t count) {
  return ShapeOf(kernels.fill64, count);
}

BuiltInLaunch StridedLaunch(const BuiltIns& kernels, const StridedPlan& plan) {
  const bool is_narrow = plan.count < kNarrowElements;
  return ShapeOf(plan.src != 0 ? (is_narrow ? kernels.copy_narrow : kernels.copy_wide)
                               : (is_narrow ? kernels.fill_narrow : kernels.fill_wide),
                 plan.count);
}

Status LaunchStrided(const BuiltIns& kernels, Context& context, CUstream stream, StridedPlan& plan) {
  const auto [kernel, blocks, block] = StridedLaunch(kernels, plan);
  if (kernel == nullptr) return kNoStrided;
  void* params[] = {&plan};
  return context.Check(Cuda().cuLaunchKernel(kernel->function(), blocks, 1, 1, block, 1, 1, 0, stream, params, nullptr),
                       plan.src != 0 ? "copying along axes" : "filling along axes");
}

}  // namespace millrace::cuda
