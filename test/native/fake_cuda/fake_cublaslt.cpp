// A cuBLASLt for machines without one, selected by MILLRACE_CUBLASLT: it multiplies on the streams of the fake driver,
// one element after the other, and checks what it gets more strictly than the real library.
//
//   MILLRACE_FAKE_CUBLASLT=create:1, heuristic:15, matmul:13   the call that fails, and its status
//
// Its best algorithm needs 512 bytes of workspace, which it writes, and pointers that are aligned to 16 bytes.
#include "cuda/cublaslt.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "streams.h"

namespace millrace::cuda {

struct cublasLtContext {};

struct cublasLtObject {
  int type = 0;  // Of a matrix's elements, or of the computation.
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t stride = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;
  bool transposes[2] = {};
  std::map<int, uint64_t> preferences;
};

namespace {

constexpr size_t kWorkspaceBytes = 512;
constexpr uint64_t kBest = 1;
constexpr uint64_t kAny = 2;

CublasCode Injected(const std::string& call) {
  const char* const asked = std::getenv("MILLRACE_FAKE_CUBLASLT");
  if (asked == nullptr || std::string(asked).rfind(call + ":", 0) != 0) return CUBLAS_STATUS_SUCCESS;
  return static_cast<CublasCode>(std::atoi(asked + call.size() + 1));
}

double Load(int type, const void* matrix, int64_t at) {
  switch (type) {
    case kCudaR64F:
      return static_cast<const double*>(matrix)[at];
    case kCudaR16F:
      return static_cast<double>(static_cast<const _Float16*>(matrix)[at]);
    case kCudaR16BF: {
      const uint32_t bits = uint32_t{static_cast<const uint16_t*>(matrix)[at]} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    default:
      return static_cast<const float*>(matrix)[at];
  }
}

void Store(int type, void* matrix, int64_t at, double value) {
  switch (type) {
    case kCudaR64F:
      static_cast<double*>(matrix)[at] = value;
      return;
    case kCudaR16F:
      static_cast<_Float16*>(matrix)[at] = static_cast<_Float16>(value);
      return;
    case kCudaR16BF: {
      const auto single = static_cast<float>(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, sizeof(bits));
      // To the nearest, ties to even.
      static_cast<uint16_t*>(matrix)[at] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      return;
    }
    default:
      static_cast<float*>(matrix)[at] = static_cast<float>(value);
  }
}

struct Product {
  cublasLtObject operation;
  cublasLtObject a;
  cublasLtObject b;
  cublasLtObject d;
  const void* a_data;
  const void* b_data;
  void* d_data;
  void* workspace;

  void Run() const {
    if (workspace != nullptr) std::memset(workspace, 1, kWorkspaceBytes);
    const uint64_t inner = operation.transposes[0] ? a.rows : a.columns;
    const auto element = [](const cublasLtObject& matrix, const void* data, bool is_transposed, int64_t batch,
                            uint64_t row, uint64_t column) {
      if (is_transposed) std::swap(row, column);
      const auto at = static_cast<int64_t>(row) + static_cast<int64_t>(column) * matrix.stride;
      return Load(matrix.type, data, batch * matrix.batch_stride + at);
    };
    for (int32_t batch = 0; batch < d.batches; ++batch) {
      for (uint64_t column = 0; column < d.columns; ++column) {
        for (uint64_t row = 0; row < d.rows; ++row) {
          double sum = 0;
          for (uint64_t step = 0; step < inner; ++step) {
            sum += element(a, a_data, operation.transposes[0], batch, row, step) *
                   element(b, b_data, operation.transposes[1], batch, step, column);
          }
          Store(d.type, d_data, batch * d.batch_stride + static_cast<int64_t>(row + column * d.rows), sum);
        }
      }
    }
  }
};

bool Suits(const cublasLtObject& operation, const cublasLtObject& a, const cublasLtObject& b, const cublasLtObject& d) {
  const auto rows = [](const cublasLtObject& matrix, bool is_transposed) {
    return is_transposed ? matrix.columns : matrix.rows;
  };
  const auto is_wide = [](const cublasLtObject& matrix) { return matrix.stride >= static_cast<int64_t>(matrix.rows); };
  return is_wide(a) && is_wide(b) && is_wide(d) && rows(a, operation.transposes[0]) == d.rows &&
         rows(b, !operation.transposes[1]) == d.columns &&
         rows(a, !operation.transposes[0]) == rows(b, operation.transposes[1]) && a.batches == d.batches &&
         b.batches == d.batches;
}

template <typename T>
CublasCode Read(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

CublasCode Make(CublasLtObject* made, cublasLtObject value) {
  *made = new cublasLtObject(std::move(value));
  return CUBLAS_STATUS_SUCCESS;
}

CublasCode Drop(CublasLtObject object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

#define MR_CUBLASLT(name, params) __attribute__((visibility("default"))) CublasCode name params;
#include "cuda/cublaslt_functions.def"
#undef MR_CUBLASLT

__attribute__((visibility("default"))) size_t cublasLtGetVersion() {
  return 120804;
}

CublasCode cublasLtCreate(CublasLtHandle* handle) {
  const CublasCode code = Injected("create");
  if (code == CUBLAS_STATUS_SUCCESS) *handle = new cublasLtContext();
  return code;
}

CublasCode cublasLtDestroy(CublasLtHandle handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

CublasCode cublasLtMatmulDescCreate(CublasLtObject* made, int compute_type, int scale_type) {
  if ((compute_type == kCompute64F) != (scale_type == kCudaR64F)) return CUBLAS_STATUS_INVALID_VALUE;
  return Make(made, {.type = compute_type});
}
CublasCode cublasLtMatmulDescDestroy(CublasLtObject object) {
  return Drop(object);
}
CublasCode cublasLtMatmulDescSetAttribute(CublasLtObject object, int attribute, const void* value, size_t bytes) {
  int32_t operation = 0;
  if (attribute != kDescTransposesA && attribute != kDescTransposesB) return CUBLAS_STATUS_INVALID_VALUE;
  const CublasCode code = Read(operation, value, bytes);
  object->transposes[attribute - kDescTransposesA] = operation == kTransposed;
  return code;
}

CublasCode cublasLtMatrixLayoutCreate(CublasLtObject* made, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return Make(made, {.type = type, .rows = rows, .columns = columns, .stride = ld});
}
CublasCode cublasLtMatrixLayoutDestroy(CublasLtObject object) {
  return Drop(object);
}
CublasCode cublasLtMatrixLayoutSetAttribute(CublasLtObject object, int attribute, const void* value, size_t bytes) {
  if (attribute == kLayoutBatchCount) return Read(object->batches, value, bytes);
  return attribute == kLayoutBatchStride ? Read(object->batch_stride, value, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}

CublasCode cublasLtMatmulPreferenceCreate(CublasLtObject* made) {
  return Make(made, {});
}
CublasCode cublasLtMatmulPreferenceDestroy(CublasLtObject object) {
  return Drop(object);
}
CublasCode cublasLtMatmulPreferenceSetAttribute(CublasLtObject object, int attribute, const void* value, size_t bytes) {
  if (bytes > sizeof(uint64_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&object->preferences[attribute], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

CublasCode cublasLtMatmulAlgoGetHeuristic(CublasLtHandle, CublasLtObject operation, CublasLtObject a, CublasLtObject b,
                                          CublasLtObject c, CublasLtObject d, CublasLtObject preference, int most,
                                          CublasLtHeuristic* found, int* count) {
  *count = 0;
  const CublasCode code = Injected("heuristic");
  if (code != CUBLAS_STATUS_SUCCESS) return code;
  if (c != d || most < 1 || !Suits(*operation, *a, *b, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  const std::map<int, uint64_t>& preferred = preference->preferences;
  bool is_best = preferred.at(kPreferWorkspaceBytes) >= kWorkspaceBytes;
  for (int operand = 0; operand < 4; ++operand) is_best = is_best && preferred.at(kPreferAlignment + operand) >= 16;
  *found = {};
  found->algorithm.data[0] = is_best ? kBest : kAny;
  found->workspace_bytes = is_best ? kWorkspaceBytes : 0;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

CublasCode cublasLtMatmul(CublasLtHandle, CublasLtObject operation, const void* alpha, const void* a,
                          CublasLtObject a_layout, const void* b, CublasLtObject b_layout, const void* beta,
                          const void* c, CublasLtObject, void* d, CublasLtObject d_layout,
                          const CublasLtAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                          CUstream stream) {
  const CublasCode code = Injected("matmul");
  if (code != CUBLAS_STATUS_SUCCESS) return code;
  const bool is_f64 = operation->type == kCompute64F;
  const auto scale = [&](const void* value) {
    return is_f64 ? *static_cast<const double*>(value) : *static_cast<const float*>(value);
  };
  const auto bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(d);
  const bool is_best = algorithm->data[0] == kBest;
  const bool has_room = workspace_bytes >= kWorkspaceBytes && workspace != nullptr;
  if (scale(alpha) != 1 || scale(beta) != 0 || c != d ||
      (is_best ? bits % 16 != 0 || !has_room : workspace != nullptr)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  auto* const product = new Product{*operation, *a_layout, *b_layout, *d_layout, a, b, d, workspace};
  const auto run = [](void* data) { static_cast<Product*>(data)->Run(); };
  const auto drop = [](void* data) { delete static_cast<Product*>(data); };
  const CUresult pushed =
      fakeCudaPush(stream, is_best ? "cublasLtMatmul best" : "cublasLtMatmul any", run, drop, product);
  return pushed == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"

}  // namespace millrace::cuda
