#include "cuda/matmul.h"

#include <array>
#include <cstring>
#include <tuple>

#include "cuda/context_scope.h"
#include "cuda/stream_capture.h"

namespace millrace::cuda {

namespace {

using hal::MatmulPlan;
using hal::PlanMatrix;
using hal::PlanType;

/// As the library itself takes on recent GPUs; more made no product faster.
constexpr uint64_t kWorkspaceBytes = 32 << 20;
/// What the widest loads of its kernels need. Arrays begin at multiples of 256 bytes, views where their elements do.
constexpr uint64_t kOperandAlignment = 16;
/// An address for calls that are captured and do not run.
void* const kNoMemory = reinterpret_cast<void*>(uintptr_t{1} << 20);

int LibraryType(PlanType type) {
  constexpr std::array<int, 4> kTypes = {kCudaR32F, kCudaR64F, kCudaR16F, kCudaR16BF};
  return kTypes[static_cast<size_t>(type)];
}

uint32_t BytesOf(PlanType type) {
  constexpr std::array<uint32_t, 4> kBytes = {4, 8, 2, 2};
  return kBytes[static_cast<size_t>(type)];
}

using DestroyDescription = CublasCode (*)(CublasLtObject);

/// A description, which it destroys.
class Description {
 public:
  Description() = default;
  ~Description() {
    if (object_ != nullptr) destroy_(object_);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  CublasLtObject* Take(DestroyDescription destroy) {
    destroy_ = destroy;
    return &object_;
  }
  [[nodiscard]] CublasLtObject get() const { return object_; }

 private:
  CublasLtObject object_ = nullptr;
  DestroyDescription destroy_ = nullptr;
};

/// The library counts columns first, so it gets the transposed product: the result's columns are its rows.
class Matmul final : public LibraryKernel {
 public:
  Matmul(std::shared_ptr<CublasLt> library, const MatmulPlan& plan)
      : LibraryKernel(library->context()), library_(std::move(library)), plan_(plan) {}

  Status Prepare();
  [[nodiscard]] uint64_t WorkspaceBytes(std::span<void* const> params) const override;
  [[nodiscard]] uint64_t MostWorkspaceBytes() const override { return best_.workspace_bytes; }
  [[nodiscard]] Status Call(CUstream stream, std::span<void* const> params, std::byte* workspace) override;

 private:
  struct Operands {
    const void* a;
    const void* b;
    void* result;
    [[nodiscard]] bool AreAligned() const {
      const auto bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b);
      return (bits | reinterpret_cast<uintptr_t>(result)) % kOperandAlignment == 0;
    }
  };
  [[nodiscard]] Operands OperandsOf(std::span<void* const> params) const;
  Status Describe(const PlanMatrix& matrix, uint64_t rows, uint64_t columns, Description& layout, int transposes);
  Status Describe(Description& layout, PlanType type, uint64_t rows, uint64_t columns, uint64_t stride,
                  uint64_t batch_stride);
  Status Choose(uint64_t workspace_bytes, bool is_aligned, CublasLtHeuristic& chosen);
  Status Multiply(CUstream stream, const Operands& operands, const CublasLtHeuristic& how, void* workspace);

  const std::shared_ptr<CublasLt> library_;
  const MatmulPlan plan_;
  Description operation_;
  Description a_;
  Description b_;
  Description result_;
  CublasLtHeuristic best_;
  CublasLtHeuristic any_;  // For any alignment, and without more memory.
};

Matmul::Operands Matmul::OperandsOf(std::span<void* const> params) const {
  const auto pointer = [&](uint32_t param) {
    uintptr_t address = 0;
    std::memcpy(&address, params[param], sizeof(address));
    return reinterpret_cast<void*>(address);
  };
  return {pointer(plan_.a.param), pointer(plan_.b.param), pointer(plan_.result_param)};
}

Status Matmul::Describe(Description& layout, PlanType type, uint64_t rows, uint64_t columns, uint64_t stride,
                        uint64_t batch_stride) {
  const CublasLtTable& table = library_->functions();
  MR_TRY(CublasLtFailure(table.cublasLtMatrixLayoutCreate(
      layout.Take(table.cublasLtMatrixLayoutDestroy), LibraryType(type), columns, rows, static_cast<int64_t>(stride))));
  if (plan_.batches == 1) return {};
  const auto count = static_cast<int32_t>(plan_.batches);
  MR_TRY(
      CublasLtFailure(table.cublasLtMatrixLayoutSetAttribute(layout.get(), kLayoutBatchCount, &count, sizeof(count))));
  const auto step = static_cast<int64_t>(batch_stride);
  return CublasLtFailure(table.cublasLtMatrixLayoutSetAttribute(layout.get(), kLayoutBatchStride, &step, sizeof(step)));
}

Status Matmul::Describe(const PlanMatrix& matrix, uint64_t rows, uint64_t columns, Description& layout,
                        int transposes) {
  if (!matrix.is_transposed) return Describe(layout, plan_.type, rows, columns, matrix.stride, matrix.batch_stride);
  MR_TRY(Describe(layout, plan_.type, columns, rows, matrix.stride, matrix.batch_stride));
  return CublasLtFailure(library_->functions().cublasLtMatmulDescSetAttribute(operation_.get(), transposes,
                                                                              &kTransposed, sizeof(kTransposed)));
}

Status Matmul::Prepare() {
  const CublasLtTable& table = library_->functions();
  const bool is_f64 = plan_.type == PlanType::kF64;
  const int compute = is_f64 ? kCompute64F : plan_.is_tf32 ? kComputeTf32 : kCompute32F;
  MR_TRY(CublasLtFailure(table.cublasLtMatmulDescCreate(operation_.Take(table.cublasLtMatmulDescDestroy), compute,
                                                        is_f64 ? kCudaR64F : kCudaR32F)));
  MR_TRY(Describe(plan_.b, plan_.inner, plan_.columns, b_, kDescTransposesA));
  MR_TRY(Describe(plan_.a, plan_.rows, plan_.inner, a_, kDescTransposesB));
  MR_TRY(Describe(result_, plan_.result, plan_.rows, plan_.columns, plan_.columns, plan_.rows * plan_.columns));
  MR_TRY(Choose(kWorkspaceBytes, true, best_));
  MR_TRY(Choose(0, false, any_));
  // A first call on the channel's thread would load the kernels there, and may wait for the device to do so.
  Result<std::unique_ptr<StreamCapture>> capture = StreamCapture::Create(library_->context());
  MR_TRY(capture.status());
  for (const CublasLtHeuristic* const each : {&best_, &any_}) {
    const auto load = [&](CUstream stream) {
      return Multiply(stream, {kNoMemory, kNoMemory, kNoMemory}, *each, kNoMemory);
    };
    // It may refuse the address, which is none.
    std::ignore = capture.value()->Capture(load).status();
  }
  return context().Alive();
}

Status Matmul::Choose(uint64_t workspace_bytes, bool is_aligned, CublasLtHeuristic& chosen) {
  const CublasLtTable& table = library_->functions();
  Description preference;
  MR_TRY(CublasLtFailure(table.cublasLtMatmulPreferenceCreate(preference.Take(table.cublasLtMatmulPreferenceDestroy))));
  const auto set = [&](int attribute, const auto& value) {
    return CublasLtFailure(
        table.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)));
  };
  MR_TRY(set(kPreferWorkspaceBytes, workspace_bytes));
  MR_TRY(set(kPreferReductions, kReduceInComputeType));
  const std::array<uint32_t, 4> own = {BytesOf(plan_.type), BytesOf(plan_.type), BytesOf(plan_.result),
                                       BytesOf(plan_.result)};
  for (size_t operand = 0; operand < own.size(); ++operand) {
    MR_TRY(set(kPreferAlignment + static_cast<int>(operand),
               is_aligned ? static_cast<uint32_t>(kOperandAlignment) : own[operand]));
  }
  int count = 0;
  MR_TRY(CublasLtFailure(table.cublasLtMatmulAlgoGetHeuristic(library_->handle(), operation_.get(), b_.get(), a_.get(),
                                                              result_.get(), result_.get(), preference.get(), 1,
                                                              &chosen, &count)));
  if (count == 0) return CublasLtFailure(CUBLAS_STATUS_NOT_SUPPORTED);
  return CublasLtFailure(chosen.state);
}

uint64_t Matmul::WorkspaceBytes(std::span<void* const> params) const {
  return OperandsOf(params).AreAligned() ? best_.workspace_bytes : 0;
}

Status Matmul::Call(CUstream stream, std::span<void* const> params, std::byte* workspace) {
  const Operands operands = OperandsOf(params);
  const bool is_best = operands.AreAligned() && (workspace != nullptr || best_.workspace_bytes == 0);
  return Multiply(stream, operands, is_best ? best_ : any_, workspace);
}

Status Matmul::Multiply(CUstream stream, const Operands& operands, const CublasLtHeuristic& how, void* workspace) {
  constexpr float kOne = 1;
  constexpr float kNone = 0;
  constexpr double kOneF64 = 1;
  constexpr double kNoneF64 = 0;
  const bool is_f64 = plan_.type == PlanType::kF64;
  const void* const alpha = is_f64 ? static_cast<const void*>(&kOneF64) : &kOne;
  const void* const beta = is_f64 ? static_cast<const void*>(&kNoneF64) : &kNone;
  const CublasCode code = library_->functions().cublasLtMatmul(
      library_->handle(), operation_.get(), alpha, operands.b, b_.get(), operands.a, a_.get(), beta, operands.result,
      result_.get(), operands.result, result_.get(), &how.algorithm, how.workspace_bytes == 0 ? nullptr : workspace,
      how.workspace_bytes, stream);
  // The library hides a lost device behind a status of its own.
  if (code != CUBLAS_STATUS_SUCCESS) MR_TRY(context().Ask());
  return CublasLtFailure(code);
}

}  // namespace

Result<std::shared_ptr<CublasLt>> CublasLt::Open(std::shared_ptr<Context> context) {
  const CublasLtLibrary* const library = OpenCublasLt();
  if (library == nullptr) return Status(StatusCode::kUnavailable, "finding cuBLASLt");
  std::shared_ptr<CublasLt> opened(new CublasLt(*library, std::move(context)));
  MR_TRY(CublasLtFailure(library->functions.cublasLtCreate(&opened->handle_)));
  return opened;
}

CublasLt::~CublasLt() {
  if (handle_ == nullptr || context_->is_lost()) return;
  const ContextScope scope(context_->handle());
  if (scope.code() == CUDA_SUCCESS) std::ignore = functions().cublasLtDestroy(handle_);
}

Result<std::shared_ptr<LibraryKernel>> PlanMatmul(std::shared_ptr<CublasLt> library, const hal::MatmulPlan& plan) {
  auto made = std::make_shared<Matmul>(std::move(library), plan);
  MR_TRY(made->Prepare());
  return std::shared_ptr<LibraryKernel>(std::move(made));
}

}  // namespace millrace::cuda
