// Work that a library of the machine does in the place of a kernel. A plan is installed under a kernel's handle, and
// its launches have the kernel's parameters, so that the runtime orders, tracks and captures both alike (decision
// 0052).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "hal/caps.h"
#include "protocol/protocol.gen.h"

namespace millrace::hal {

class Kernel;

/// What LoadPlan made, and who runs it.
struct PlannedCall {
  std::shared_ptr<Kernel> kernel;
  LibraryInfo library;
  /// Its last two parameters are a fault slot and the device's word, as those of a checked kernel.
  bool is_checked = false;
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
};

enum class TransformForm : uint32_t { kComplex, kReal, kHermitian };

/// Discrete Fourier transforms of contiguous arrays of `outer` x lengths x `inner` elements, along all the lengths.
/// The last length is halved in the results of kReal, and in the operands of kHermitian. Nothing is scaled.
struct TransformPlan {
  static constexpr size_t kMostLengths = 3;
  PlanType type = PlanType::kF32;
  TransformForm form = TransformForm::kComplex;
  bool is_inverse = false;
  uint64_t rank = 1;
  std::array<uint64_t, kMostLengths> lengths{};  // Those beyond `rank` are 1.
  uint64_t outer = 1;
  uint64_t inner = 1;
  uint32_t operand_param = 0;
  uint32_t result_param = 0;
};

/// In the order of KINDS in src/collectives/nccl-plans.ts.
enum class CollectiveKind : uint32_t { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kSend };

/// Operations of a communicator that are issued as one group, for the ranks that it has in this process.
struct CollectivePlan {
  static constexpr uint32_t kNone = UINT32_MAX;
  /// The numbers of a rank's arrays among the launch's parameters; kNone for what it has not.
  struct Arrays {
    uint32_t from = kNone;
    uint32_t to = kNone;
  };
  struct Operation {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    uint32_t type = 0;   // As ncclDataType_t.
    uint32_t op = 0;     // As ncclRedOp_t.
    uint32_t root = 0;   // A rank: of kSend the sender.
    uint32_t peer = 0;   // Of kSend the receiver.
    uint32_t count = 0;  // The number of a parameter of 64 bits: the elements of the block that one rank sends another.
    std::vector<Arrays> arrays;  // By the ranks of this process.
  };
  uint32_t communicator = 0;
  uint32_t ranks = 0;
  std::vector<Operation> operations;
};

using LibraryPlan = std::variant<MatmulPlan, TransformPlan, CollectivePlan>;

/// From the words that src/ops writes: the number of the alternative, and its members in their order. Nothing for words
/// that no caller sends.
inline std::optional<LibraryPlan> ReadPlan(std::span<const uint64_t> words) {
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  size_t next = 0;
  bool is_valid = true;
  const auto upTo = [&](uint64_t most) {
    is_valid = is_valid && next < words.size() && words[next] <= most;
    return is_valid ? words[next++] : 0;
  };
  const auto param = [&] { return static_cast<uint32_t>(upTo(kMost)); };
  const auto type = [&](PlanType last) { return static_cast<PlanType>(upTo(static_cast<uint64_t>(last))); };
  LibraryPlan made;
  const uint64_t alternative = upTo(2);
  if (alternative == 0) {
    MatmulPlan plan;
    plan.type = type(PlanType::kBF16);
    plan.result = type(PlanType::kBF16);
    plan.is_tf32 = upTo(1) != 0;
    for (uint64_t* const extent : {&plan.rows, &plan.columns, &plan.inner, &plan.batches}) *extent = upTo(kMost);
    for (PlanMatrix* const matrix : {&plan.a, &plan.b}) {
      matrix->param = param();
      matrix->is_transposed = upTo(1) != 0;
      matrix->stride = upTo(kMost);
      matrix->batch_stride = upTo(kMost);
    }
    plan.result_param = param();
    made = plan;
  } else if (alternative == 2) {
    constexpr uint64_t kLastType = 9;
    constexpr uint64_t kLastOp = 4;
    constexpr uint64_t kMostRanks = 1 << 16;
    CollectivePlan plan;
    plan.communicator = param();
    plan.ranks = static_cast<uint32_t>(upTo(kMostRanks));
    is_valid = is_valid && plan.ranks > 0 && next < words.size();
    // One more than the number; 0 is none.
    const auto number = [&] { return static_cast<uint32_t>(upTo(protocol::kMaxLaunchArgs)) - 1; };
    while (is_valid && next < words.size()) {
      CollectivePlan::Operation& operation = plan.operations.emplace_back();
      operation.kind = static_cast<CollectiveKind>(upTo(static_cast<uint64_t>(CollectiveKind::kSend)));
      operation.type = static_cast<uint32_t>(upTo(kLastType));
      operation.op = static_cast<uint32_t>(upTo(kLastOp));
      operation.root = static_cast<uint32_t>(upTo(kMostRanks));
      operation.peer = static_cast<uint32_t>(upTo(kMostRanks));
      operation.count = static_cast<uint32_t>(upTo(protocol::kMaxLaunchArgs));
      for (uint32_t rank = 0; is_valid && rank < plan.ranks; ++rank) {
        const uint32_t from = number();
        operation.arrays.push_back({from, number()});
      }
    }
    made = std::move(plan);
  } else {
    TransformPlan plan;
    plan.type = type(PlanType::kF64);
    plan.form = static_cast<TransformForm>(upTo(2));
    plan.is_inverse = upTo(1) != 0;
    plan.rank = upTo(TransformPlan::kMostLengths);
    for (uint64_t& length : plan.lengths) length = upTo(kMost);
    plan.outer = upTo(kMost);
    plan.inner = upTo(kMost);
    plan.operand_param = param();
    plan.result_param = param();
    is_valid = is_valid && plan.rank > 0;
    made = plan;
  }
  if (!is_valid || next != words.size()) return std::nullopt;
  return made;
}

}  // namespace millrace::hal
