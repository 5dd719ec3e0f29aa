// Work that a library of the machine does in the place of a kernel. A plan is installed under a kernel's handle, and
// its launches have the kernel's parameters, so that the runtime orders, tracks and captures both alike (decision
// 0052).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace millrace::hal {

class Kernel;

/// Where a library was found.
struct LibraryInfo {
  std::string name;     // As its vendor writes it: cuBLASLt.
  std::string version;  // 12.8.4
  std::string path;
};

/// What LoadPlan made, and who runs it.
struct PlannedCall {
  std::shared_ptr<Kernel> kernel;
  LibraryInfo library;
};

/// In the order of PLAN_TYPES in src/core/channel/build-spec.ts.
enum class PlanType : uint32_t { kF32, kF64, kF16, kBF16 };

/// One operand of a product: either its rows or, if it is transposed, its columns are contiguous.
struct PlanMatrix {
  uint32_t param = 0;  // The number of its pointer among the launch's parameters.
  bool is_transposed = false;
  uint64_t stride = 0;        // Elements from one row, or column, to the next.
  uint64_t batch_stride = 0;  // Elements from one matrix to the next; 0 if all products have the same.
};

/// Products of row-major matrices; the results are contiguous.
struct MatmulPlan {
  PlanType type = PlanType::kF32;    // Of both operands.
  PlanType result = PlanType::kF32;  // `type`, or f32 for f16 and bf16.
  bool is_tf32 = false;
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t inner = 0;
  uint64_t batches = 1;
  PlanMatrix a;
  PlanMatrix b;
  uint32_t result_param = 0;

  static constexpr size_t kWords = 16;
  /// From the words that src/ops writes, in the order of the members. Nothing for words that no caller sends.
  static std::optional<MatmulPlan> Read(std::span<const uint64_t> words) {
    if (words.size() != kWords) return std::nullopt;
    MatmulPlan plan;
    size_t next = 0;
    bool is_valid = true;
    const auto upTo = [&](uint64_t most) {
      is_valid = is_valid && words[next] <= most;
      return words[next++];
    };
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
    const auto type = [&] { return static_cast<PlanType>(upTo(static_cast<uint64_t>(PlanType::kBF16))); };
    plan.type = type();
    plan.result = type();
    plan.is_tf32 = upTo(1) != 0;
    for (uint64_t* const extent : {&plan.rows, &plan.columns, &plan.inner, &plan.batches}) *extent = upTo(kMost);
    for (PlanMatrix* const matrix : {&plan.a, &plan.b}) {
      matrix->param = static_cast<uint32_t>(upTo(kMost));
      matrix->is_transposed = upTo(1) != 0;
      matrix->stride = upTo(kMost);
      matrix->batch_stride = upTo(kMost);
    }
    plan.result_param = static_cast<uint32_t>(upTo(kMost));
    if (!is_valid) return std::nullopt;
    return plan;
  }
};

}  // namespace millrace::hal
