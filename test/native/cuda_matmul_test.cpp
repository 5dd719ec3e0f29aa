// Products of matrices by cuBLASLt on the CUDA backend, with the fake driver and the fake library.
//
//   cuda_matmul_test                     on the fakes
//   cuda_matmul_test cuda_kernels.cubin  on the first GPU, with the library of the machine
#include <vector>

#include "cuda_fixture.h"
#include "cuda_graph_stream.h"
#include "graph_support.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr uint32_t kSide = 32;
constexpr uint64_t kCount = kSide * kSide;

hal::MatmulPlan Square() {
  hal::MatmulPlan plan;
  plan.rows = plan.columns = plan.inner = kSide;
  plan.a = {.param = 0, .stride = kSide};
  plan.b = {.param = 1, .is_transposed = true, .stride = kSide};
  plan.result_param = 2;
  return plan;
}

/// Page-locked memory, which the device accesses like its own.
struct Matrices {
  explicit Matrices(Opened& opened)
      : a(*opened.device, 4 * kCount + 4), b(*opened.device, 4 * kCount), y(*opened.device, 4 * kCount) {
    for (uint64_t at = 0; at < kCount; ++at) {
      a.As<float>()[at] = static_cast<float>(at % 7);
      b.As<float>()[at] = static_cast<float>(at % 5);
    }
    a.As<float>()[kCount] = 3;
  }
  /// Whether `y` is the product of what begins at `from` and the transposed `b`.
  bool AreMultiplied(uint64_t from = 0) {
    for (uint64_t row = 0; row < kSide; ++row) {
      for (uint64_t column = 0; column < kSide; ++column) {
        float sum = 0;
        for (uint64_t step = 0; step < kSide; ++step)
          sum += a.As<float>()[from + row * kSide + step] * b.As<float>()[column * kSide + step];
        if (y.As<float>()[row * kSide + column] != sum) return false;
      }
    }
    return true;
  }
  Pinned a;
  Pinned b;
  Pinned y;
};

std::shared_ptr<hal::Kernel> Plan(Opened& opened) {
  Result<hal::PlannedCall> planned = opened.device->LoadPlan(Square());
  if (!planned.ok()) std::printf("  plan: %s\n", planned.status().note());
  MR_CHECK(planned.ok() && planned.value().library.name == "cuBLASLt");
  return std::move(planned.value().kernel);
}

MR_TEST(ALaunchMultipliesWhateverTheAlignmentAndTheMemory) {
  Opened opened(0);
  auto kernel = Plan(opened);
  Matrices matrices(opened);
  Lane lane(opened, 0);
  lane.Launch(kernel, matrices.a.data, matrices.b.data, matrices.y.data);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(matrices.AreMultiplied());
  // One element further, where the fast kernels do not load.
  lane.Launch(kernel, matrices.a.data + 4, matrices.b.data, matrices.y.data);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(matrices.AreMultiplied(1));
  if (!OnFake()) return;
  FailCalls("cuMemAllocAsync:0:2");
  lane.Launch(kernel, matrices.a.data, matrices.b.data, matrices.y.data);
  FailCalls("");
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(matrices.AreMultiplied());
}

// G1, G4.
MR_TEST(AGraphMultipliesWithTheAddressesOfEachLaunch) {
  Opened opened(0);
  auto kernel = Plan(opened);
  Matrices matrices(opened);
  Pinned other(*opened.device, 4 * kCount);
  Nodes nodes(*opened.device);
  nodes.Then(KernelNode(kernel, {1, 1, 1}, matrices.a.data, matrices.b.data, matrices.y.data));
  nodes.Then(hal::GraphCopy{other.data, matrices.y.data, 4 * kCount, {}});
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
  MR_EXPECT(matrices.AreMultiplied());
  MR_EXPECT(std::memcmp(other.data, matrices.y.data, 4 * kCount) == 0);
  const std::vector<hal::GraphPatch> patches{{0, 0, Bits(matrices.a.data + 4)}};
  if (OnFake()) {
    FailCalls("cuStreamBeginCapture:0:2");
    MR_EXPECT(!lane.Launch(*graph, patches).ok());
    FailCalls("");
    MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
    MR_EXPECT(matrices.AreMultiplied());
  }
  MR_REQUIRE(lane.Launch(*graph, patches).ok() && lane.Drained());
  MR_EXPECT(matrices.AreMultiplied(1));
  MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
  MR_EXPECT(matrices.AreMultiplied(1));
}

MR_TEST(WhatCublasLtRefusesNamesItsStatus) {
  if (!OnFake()) return;
  Opened opened(0);
  auto kernel = Plan(opened);
  Matrices matrices(opened);
  auto stream = opened.NewStream(0);
  setenv("MILLRACE_FAKE_CUBLASLT", "heuristic:15", 1);
  const Status refused = opened.device->LoadPlan(Square()).status();
  MR_EXPECT(refused.code() == StatusCode::kUnsupported);
  MR_EXPECT(std::strcmp(refused.note(), "cuBLASLt answered CUBLAS_STATUS_NOT_SUPPORTED") == 0);
  setenv("MILLRACE_FAKE_CUBLASLT", "matmul:13", 1);
  std::array<std::byte*, 3> addresses{matrices.a.data, matrices.b.data, matrices.y.data};
  std::array<void*, 3> params{&addresses[0], &addresses[1], &addresses[2]};
  const Status failed = stream->Launch(1, {.kernel = kernel.get(), .params = params});
  MR_EXPECT(failed.code() == StatusCode::kLaunchFailed);
  MR_EXPECT(std::strcmp(failed.note(), "cuBLASLt answered CUBLAS_STATUS_EXECUTION_FAILED") == 0);
  unsetenv("MILLRACE_FAKE_CUBLASLT");
  MR_EXPECT(stream->Launch(1, {.kernel = kernel.get(), .params = params}).ok());
  MR_REQUIRE(Finish(*stream, 1));
  MR_EXPECT(matrices.AreMultiplied());
}

}  // namespace
