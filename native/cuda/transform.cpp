#include "cuda/transform.h"

#include <cstring>
#include <mutex>
#include <tuple>

#include "cuda/context_scope.h"
#include "cuda/stream_capture.h"

namespace millrace::cuda {

namespace {

using hal::TransformForm;
using hal::TransformPlan;

/// Parts of the workspace begin at multiples of it.
constexpr uint64_t kWorkspaceAlignment = 256;
/// Addresses for calls that are captured and do not run.
std::byte* const kNoOperand = reinterpret_cast<std::byte*>(uintptr_t{1} << 20);
std::byte* const kNoResult = reinterpret_cast<std::byte*>(uintptr_t{2} << 20);
std::byte* const kNoWorkspace = reinterpret_cast<std::byte*>(uintptr_t{3} << 20);

constexpr uint64_t Aligned(uint64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

/// The library reads and writes at multiples of a complex number, and its transforms to real numbers overwrite what
/// they read. So the workspace has room for both arrays behind that of the library.
class Transform final : public LibraryKernel {
 public:
  Transform(const CufftTable& library, std::shared_ptr<Context> context, const TransformPlan& plan)
      : LibraryKernel(std::move(context)), library_(library), plan_(plan) {}
  ~Transform() override {
    if (plan_handle_ == kNoPlan || context().is_lost()) return;
    const ContextScope scope(context().handle());
    if (scope.code() == CUDA_SUCCESS) std::ignore = library_.cufftDestroy(plan_handle_);
  }

  Status Prepare(std::shared_ptr<Context> context);
  [[nodiscard]] uint64_t WorkspaceBytes(std::span<void* const> params) const override {
    return BytesFor(OperandsOf(params));
  }
  [[nodiscard]] uint64_t MostWorkspaceBytes() const override {
    return own_bytes_ + Aligned(from_bytes_) + Aligned(to_bytes_);
  }
  [[nodiscard]] bool NeedsWorkspace() const override { return true; }
  [[nodiscard]] Status Call(CUstream stream, std::span<void* const> params, std::byte* workspace) override {
    return Execute(stream, OperandsOf(params), workspace);
  }

 private:
  struct Operands {
    std::byte* from;
    std::byte* to;
  };
  static constexpr CufftHandle kNoPlan = -1;

  [[nodiscard]] uint64_t RealBytes() const { return plan_.type == hal::PlanType::kF64 ? 8 : 4; }
  [[nodiscard]] bool IsAligned(const std::byte* address) const {
    return reinterpret_cast<uintptr_t>(address) % (2 * RealBytes()) == 0;
  }
  [[nodiscard]] bool Copies(const std::byte* from) const {
    return plan_.form == TransformForm::kHermitian || !IsAligned(from);
  }
  [[nodiscard]] Operands OperandsOf(std::span<void* const> params) const {
    const auto pointer = [&](uint32_t param) {
      std::byte* address = nullptr;
      std::memcpy(&address, params[param], sizeof(address));
      return address;
    };
    return {pointer(plan_.operand_param), pointer(plan_.result_param)};
  }
  [[nodiscard]] uint64_t BytesFor(const Operands& operands) const {
    return own_bytes_ + (Copies(operands.from) ? Aligned(from_bytes_) : 0) +
           (IsAligned(operands.to) ? 0 : Aligned(to_bytes_));
  }
  Status MakePlan();
  Status Execute(CUstream stream, const Operands& operands, std::byte* workspace);
  Status Submit(CUstream stream, std::byte* from, std::byte* to, std::byte* workspace);
  [[nodiscard]] CufftCode Compute(std::byte* from, std::byte* to) const;

  const CufftTable& library_;
  const TransformPlan plan_;
  CufftHandle plan_handle_ = kNoPlan;
  uint64_t own_bytes_ = 0;  // Of the library's workspace.
  uint64_t from_bytes_ = 0;
  uint64_t to_bytes_ = 0;
  std::mutex mutex_;  // The plan has one stream and one workspace at a time.
};

Status Transform::MakePlan() {
  const uint64_t inner = plan_.inner;
  // The library counts batches along one axis.
  if (inner != 1 && plan_.outer != 1) return CufftFailure(CUFFT_NOT_SUPPORTED);
  const auto rank = static_cast<int>(plan_.rank);
  std::array<long long, TransformPlan::kMostLengths> lengths{};
  std::array<long long, TransformPlan::kMostLengths> halves{};
  long long points = 1;
  long long half_points = 1;
  for (uint64_t axis = 0; axis < plan_.rank; ++axis) {
    const bool is_halved = axis + 1 == plan_.rank;
    lengths[axis] = static_cast<long long>(plan_.lengths[axis]);
    halves[axis] = is_halved ? lengths[axis] / 2 + 1 : lengths[axis];
    points *= lengths[axis];
    half_points *= halves[axis];
  }
  const bool is_real = plan_.form == TransformForm::kReal;
  const bool is_hermitian = plan_.form == TransformForm::kHermitian;
  auto& from_extents = is_hermitian ? halves : lengths;
  auto& to_extents = is_real ? halves : lengths;
  const long long from_points = is_hermitian ? half_points : points;
  const long long to_points = is_real ? half_points : points;
  const auto batches = static_cast<long long>(plan_.outer * inner);
  const auto stride = static_cast<long long>(inner);
  const auto step = [&](long long count) { return inner == 1 ? count : 1; };
  size_t bytes = 0;
  MR_TRY(CufftFailure(library_.cufftCreate(&plan_handle_)));
  MR_TRY(CufftFailure(library_.cufftSetAutoAllocation(plan_handle_, 0)));
  const int type = kCufftTypes[plan_.type == hal::PlanType::kF64 ? 1 : 0][static_cast<size_t>(plan_.form)];
  MR_TRY(CufftFailure(library_.cufftMakePlanMany64(plan_handle_, rank, lengths.data(), from_extents.data(), stride,
                                                   step(from_points), to_extents.data(), stride, step(to_points), type,
                                                   batches, &bytes)));
  own_bytes_ = Aligned(bytes);
  const auto count = static_cast<uint64_t>(batches);
  from_bytes_ = count * static_cast<uint64_t>(from_points) * RealBytes() * (is_real ? 1 : 2);
  to_bytes_ = count * static_cast<uint64_t>(to_points) * RealBytes() * (is_hermitian ? 1 : 2);
  return {};
}

Status Transform::Prepare(std::shared_ptr<Context> own) {
  MR_TRY(MakePlan());
  // A first call on the channel's thread would load the kernels there, and may wait for the device to do so.
  Result<std::unique_ptr<StreamCapture>> capture = StreamCapture::Create(std::move(own));
  MR_TRY(capture.status());
  const auto load = [&](CUstream stream) { return Submit(stream, kNoOperand, kNoResult, kNoWorkspace); };
  // It may refuse the addresses, which are none.
  std::ignore = capture.value()->Capture(load).status();
  return context().Alive();
}

Status Transform::Execute(CUstream stream, const Operands& operands, std::byte* workspace) {
  if (workspace == nullptr && BytesFor(operands) > 0)
    return {StatusCode::kOutOfMemory, "allocating the workspace of a transform"};
  const auto copy = [&](std::byte* to, const std::byte* from, uint64_t bytes) {
    return context().Check(
        Cuda().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream),
        "copying an operand of a transform");
  };
  std::byte* room = workspace == nullptr ? nullptr : workspace + own_bytes_;
  std::byte* from = operands.from;
  if (Copies(from)) {
    MR_TRY(copy(room, from, from_bytes_));
    from = room;
    room += Aligned(from_bytes_);
  }
  std::byte* const to = IsAligned(operands.to) ? operands.to : room;
  MR_TRY(Submit(stream, from, to, workspace));
  return to == operands.to ? Status() : copy(operands.to, to, to_bytes_);
}

Status Transform::Submit(CUstream stream, std::byte* from, std::byte* to, std::byte* workspace) {
  CufftCode code = CUFFT_SUCCESS;
  {
    const std::lock_guard lock(mutex_);
    code = library_.cufftSetStream(plan_handle_, stream);
    if (code == CUFFT_SUCCESS) code = library_.cufftSetWorkArea(plan_handle_, workspace);
    if (code == CUFFT_SUCCESS) code = Compute(from, to);
  }
  // The library hides a lost device behind a status of its own.
  if (code != CUFFT_SUCCESS) MR_TRY(context().Ask());
  return CufftFailure(code);
}

CufftCode Transform::Compute(std::byte* from, std::byte* to) const {
  const int direction = plan_.is_inverse ? kCufftInverse : kCufftForward;
  const bool is_f64 = plan_.type == hal::PlanType::kF64;
  switch (plan_.form) {
    case TransformForm::kComplex:
      return (is_f64 ? library_.cufftExecZ2Z : library_.cufftExecC2C)(plan_handle_, from, to, direction);
    case TransformForm::kReal:
      return (is_f64 ? library_.cufftExecD2Z : library_.cufftExecR2C)(plan_handle_, from, to);
    case TransformForm::kHermitian:
      break;
  }
  return (is_f64 ? library_.cufftExecZ2D : library_.cufftExecC2R)(plan_handle_, from, to);
}

}  // namespace

Result<std::shared_ptr<LibraryKernel>> PlanTransform(const CufftLibrary& library, std::shared_ptr<Context> context,
                                                     const hal::TransformPlan& plan) {
  auto made = std::make_shared<Transform>(library.functions, context, plan);
  MR_TRY(made->Prepare(std::move(context)));
  return std::shared_ptr<LibraryKernel>(std::move(made));
}

}  // namespace millrace::cuda
