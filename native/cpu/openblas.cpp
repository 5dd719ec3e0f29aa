#include "cpu/openblas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "hal/system_message.h"

namespace millrace::cpu {
namespace {

constexpr const char* kVariable = "MILLRACE_OPENBLAS";
constexpr const char* kOpening = "opening OpenBLAS";

// Of cblas.h.
constexpr int kRowMajor = 101;
constexpr int kNotTransposed = 111;
constexpr int kTransposed = 112;
template <typename Element>
using Gemm = void (*)(int order, int transposes_a, int transposes_b, int rows, int columns, int inner, Element alpha,
                      const Element* a, int a_stride, const Element* b, int b_stride, Element beta, Element* result,
                      int result_stride);

/// Blocks for each thread, so that threads that other work delays do not hold up the launch.
constexpr uint64_t kBlocksPerThread = 2;
/// The library copies both operands of a tile for itself: in smaller ones the copies take a fifth of the time.
constexpr uint64_t kLeastTile = 128;
/// A cancelled launch, or a more urgent one, waits for a tile of so many steps of the sums.
constexpr uint64_t kMostTile = 1024;
constexpr uint64_t kMostSteps = 8192;
/// The widest tile that the library keeps in registers.
constexpr uint64_t kTileStep = 16;
/// Multiplications and additions that take about as long as to wake a thread.
constexpr uint64_t kLeastWork = 1 << 22;

constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

/// What a launch does.
struct Multiplication {
  void* gemm;
  void (*set_threads)(int);
  hal::MatmulPlan plan;
  uint64_t tile_rows;
  uint64_t tile_columns;
};

/// The number of threads is of the process in most builds of the library, and of the calling thread in those for
/// OpenMP.
void UseOneThread(void (*set_threads)(int)) {
  thread_local void (*told)(int) = nullptr;
  if (told == set_threads) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  set_threads(1);
  told = set_threads;
}

template <typename Element>
Element* Operand(void* const* params, uint32_t param) {
  Element* address = nullptr;
  std::memcpy(&address, params[param], sizeof(address));
  return address;
}

// Of an image's entry: `params` are the Multiplication and the launch's parameters (GridCall::RunBlocks).
template <typename Element>
void Multiply(const MrLaunch* launch, unsigned long long first, unsigned long long end) {
  const auto& [gemm, set_threads, plan, tile_rows, tile_columns] =
      *static_cast<const Multiplication*>(launch->params[0]);
  auto* const params = static_cast<void* const*>(launch->params[1]);
  UseOneThread(set_threads);
  const uint64_t across = launch->grid[0];
  const uint64_t down = launch->grid[1];
  const auto at = [](const hal::PlanMatrix& matrix, uint64_t row, uint64_t column) {
    return matrix.is_transposed ? column * matrix.stride + row : row * matrix.stride + column;
  };
  const auto transposes = [](const hal::PlanMatrix& matrix) {
    return matrix.is_transposed ? kTransposed : kNotTransposed;
  };
  for (uint64_t block = first; block < end; ++block) {
    launch->block_now = block;
    const uint64_t column = block % across * tile_columns;
    const uint64_t row = block / across % down * tile_rows;
    const uint64_t batch = block / across / down;
    const Element* const a = Operand<Element>(params, plan.a.param) + batch * plan.a.batch_stride;
    const Element* const b = Operand<Element>(params, plan.b.param) + batch * plan.b.batch_stride;
    Element* const result =
        Operand<Element>(params, plan.result_param) + (batch * plan.rows + row) * plan.columns + column;
    for (uint64_t step = 0; step < plan.inner; step += kMostSteps) {
      if (launch->last_kept != nullptr && launch->ticket > __atomic_load_n(launch->last_kept, __ATOMIC_ACQUIRE)) return;
      reinterpret_cast<Gemm<Element>>(gemm)(
          kRowMajor, transposes(plan.a), transposes(plan.b), static_cast<int>(std::min(tile_rows, plan.rows - row)),
          static_cast<int>(std::min(tile_columns, plan.columns - column)),
          static_cast<int>(std::min(kMostSteps, plan.inner - step)), 1, a + at(plan.a, row, step),
          static_cast<int>(plan.a.stride), b + at(plan.b, step, column), static_cast<int>(plan.b.stride),
          step == 0 ? 0 : 1, result, static_cast<int>(plan.columns));
    }
  }
}

}  // namespace

Result<std::shared_ptr<const OpenBlas>> OpenBlas::FromEnvironment() {
  const char* const asked = std::getenv(kVariable);
  if (asked == nullptr || *asked == '\0') return std::shared_ptr<const OpenBlas>();
  if (std::string(asked) != "1") return Open(asked);
  // Fedora's build with threads has the first name, and its build for one thread the second.
  for (const char* const name : {"libopenblasp.so.0", "libopenblas.so.0"}) {
    if (dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE) != nullptr) return Open(name);
  }
  return Open("libopenblas.so");
}

Result<std::shared_ptr<const OpenBlas>> OpenBlas::Open(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return SystemMessage::Fail(StatusCode::kUnavailable, kOpening, why);
  };
  // Never unloaded: it may have started threads.
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const said = dlerror();
    return fail(said == nullptr ? path : said);
  }
  const auto opened = std::make_shared<OpenBlas>();
  opened->image_ = std::make_shared<Image>(library, path, nullptr);
  auto* const config = reinterpret_cast<const char* (*)()>(opened->image_->Find("openblas_get_config"));
  opened->sgemm_ = opened->image_->Find("cblas_sgemm");
  opened->dgemm_ = opened->image_->Find("cblas_dgemm");
  opened->set_threads_ = reinterpret_cast<void (*)(int)>(opened->image_->Find("openblas_set_num_threads"));
  if (config == nullptr || opened->sgemm_ == nullptr || opened->dgemm_ == nullptr || opened->set_threads_ == nullptr) {
    return fail(path +
                " lacks functions of OpenBLAS with these names: cblas_sgemm, cblas_dgemm, openblas_get_config, "
                "openblas_set_num_threads");
  }
  // Such as "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64".
  const std::string said = config();
  if (said.find("USE64BITINT") != std::string::npos) return fail(path + " takes sizes of 64 bits (" + said + ")");
  // Without locks, unless its maker asked for them, which nothing tells.
  if (said.find("SINGLE_THREADED") != std::string::npos) {
    return fail(path + " is built for one thread (" + said + "): name one that is built with threads");
  }
  const size_t from = std::min(said.find(' '), said.size() - 1) + 1;
  Dl_info where{};
  const bool is_found = dladdr(opened->sgemm_, &where) != 0 && where.dli_fname != nullptr;
  opened->info_ = {.name = "OpenBLAS",
                   .version = said.substr(from, said.find(' ', from) - from),
                   .path = is_found ? where.dli_fname : path};
  return std::shared_ptr<const OpenBlas>(opened);
}

Result<std::shared_ptr<hal::Kernel>> OpenBlas::Plan(const hal::MatmulPlan& plan, uint32_t threads) const {
  const bool is_f64 = plan.type == hal::PlanType::kF64;
  if (plan.result != plan.type || (!is_f64 && plan.type != hal::PlanType::kF32)) {
    return Status(StatusCode::kUnsupported, "multiplying these types by OpenBLAS");
  }
  const uint32_t last = std::max({plan.a.param, plan.b.param, plan.result_param});
  if (last >= protocol::kMaxLaunchArgs) return Status(StatusCode::kArgument, "finding the operands of a product");
  uint64_t rows = plan.rows;
  uint64_t columns = plan.columns;
  const auto blocks = [&] { return CeilDiv(plan.rows, rows) * CeilDiv(plan.columns, columns) * plan.batches; };
  const auto work = [&] { return 2 * static_cast<double>(rows) * static_cast<double>(columns * plan.inner); };
  for (uint64_t* side = nullptr; rows * columns > 0; *side = CeilDiv(CeilDiv(*side, 2), kTileStep) * kTileStep) {
    side = rows > columns ? &rows : &columns;
    const bool has_enough = blocks() >= threads * kBlocksPerThread || work() < 2 * kLeastWork;
    if (*side <= kLeastTile || (*side <= kMostTile && has_enough)) break;
  }
  const bool is_empty = rows * columns == 0;
  // The entry reads the operands, and no other parameter: each has a word.
  std::vector<uint32_t> sizes(last + 1, 1);
  for (const uint32_t param : {plan.a.param, plan.b.param, plan.result_param}) sizes[param] = sizeof(void*);
  LibraryCall call{
      .plan =
          std::make_shared<Multiplication>(Multiplication{is_f64 ? dgemm_ : sgemm_, set_threads_, plan, rows, columns}),
      .grid = {is_empty ? 0 : static_cast<uint32_t>(CeilDiv(plan.columns, columns)),
               is_empty ? 0 : static_cast<uint32_t>(CeilDiv(plan.rows, rows)), static_cast<uint32_t>(plan.batches)},
      .is_long = work() >= kLeastWork};
  constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
  const hal::KernelLimits limits{.max_threads_per_block = kAny, .max_dynamic_shared_bytes = kAny};
  return std::shared_ptr<hal::Kernel>(std::make_shared<CpuKernel>(
      image_, is_f64 ? &Multiply<double> : &Multiply<float>, std::move(sizes), false, false, limits, std::move(call)));
}

}  // namespace millrace::cpu
