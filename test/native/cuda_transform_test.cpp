// Fourier transforms by cuFFT on the CUDA backend, with the fake driver and the fake library.
//
//   cuda_transform_test                     on the fakes
//   cuda_transform_test cuda_kernels.cubin  on the first GPU, with the library of the machine
#include <cmath>

#include "cuda_fixture.h"
#include "cuda_graph_stream.h"
#include "graph_support.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr uint64_t kLength = 24;

hal::TransformPlan Row(hal::TransformForm form) {
  hal::TransformPlan plan;
  plan.form = form;
  plan.is_inverse = form == hal::TransformForm::kHermitian;
  plan.lengths = {kLength, 1, 1};
  plan.operand_param = 0;
  plan.result_param = 1;
  return plan;
}

/// A wave of three turns, its spectrum, and room beside both for other alignments.
struct Wave {
  explicit Wave(Opened& opened) : signal(*opened.device, 8 * kLength + 8), spectrum(*opened.device, 8 * kLength + 8) {}
  void Fill(uint64_t at) {
    for (uint64_t n = 0; n < kLength; ++n)
      signal.As<float>()[at + n] = std::cos(2 * 3.14159265F * 3 * static_cast<float>(n) / kLength);
  }
  /// Whether the spectrum that begins at `at` has the wave alone.
  bool IsFound(uint64_t at) {
    for (uint64_t k = 0; k <= kLength / 2; ++k) {
      const float wanted = k == 3 ? kLength / 2 : 0;
      if (std::abs(spectrum.As<float>()[at + 2 * k] - wanted) > 1e-4F) return false;
      if (std::abs(spectrum.As<float>()[at + 2 * k + 1]) > 1e-4F) return false;
    }
    return true;
  }
  Pinned signal;
  Pinned spectrum;
};

std::shared_ptr<hal::Kernel> Plan(Opened& opened, hal::TransformForm form) {
  Result<hal::PlannedCall> planned = opened.device->LoadPlan(Row(form));
  if (!planned.ok()) std::printf("  plan: %s\n", planned.status().note());
  MR_CHECK(planned.ok() && planned.value().library.name == "cuFFT");
  return std::move(planned.value().kernel);
}

MR_TEST(ALaunchTransformsWhateverTheAlignment) {
  Opened opened(0);
  auto kernel = Plan(opened, hal::TransformForm::kReal);
  Wave wave(opened);
  Lane lane(opened, 0);
  for (const uint64_t from : {0, 1}) {
    for (const uint64_t to : {0, 1}) {
      wave.Fill(from);
      std::memset(wave.spectrum.data, 0xff, 8 * kLength);
      lane.Launch(kernel, wave.signal.data + 4 * from, wave.spectrum.data + 4 * to);
      MR_REQUIRE(lane.Drained());
      MR_EXPECT(wave.IsFound(to));
    }
  }
}

MR_TEST(ATransformToRealNumbersKeepsItsOperand) {
  Opened opened(0);
  auto there = Plan(opened, hal::TransformForm::kReal);
  auto back = Plan(opened, hal::TransformForm::kHermitian);
  Wave wave(opened);
  Pinned result(*opened.device, 4 * kLength);
  Lane lane(opened, 0);
  wave.Fill(0);
  lane.Launch(there, wave.signal.data, wave.spectrum.data);
  lane.Launch(back, wave.spectrum.data, result.data);
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(wave.IsFound(0));
  for (uint64_t n = 0; n < kLength; ++n)
    MR_EXPECT(std::abs(result.As<float>()[n] / kLength - wave.signal.As<float>()[n]) < 1e-4F);
}

// G1, G4.
MR_TEST(AGraphTransformsWithTheAddressesOfEachLaunch) {
  Opened opened(0);
  auto kernel = Plan(opened, hal::TransformForm::kReal);
  Wave wave(opened);
  wave.Fill(0);
  Nodes nodes(*opened.device);
  nodes.Then(KernelNode(kernel, {1, 1, 1}, wave.signal.data, wave.spectrum.data));
  auto graph = nodes.Build();
  Lane lane(opened, 0);
  MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
  MR_EXPECT(wave.IsFound(0));
  Wave other(opened);
  other.Fill(0);
  MR_REQUIRE(lane.Launch(*graph, {{0, 0, Bits(other.signal.data)}, {0, 1, Bits(other.spectrum.data)}}).ok());
  MR_REQUIRE(lane.Drained());
  MR_EXPECT(other.IsFound(0));
  // The nodes that would copy an operand to a multiple of its alignment are not there.
  MR_EXPECT(!lane.Launch(*graph, {{0, 0, Bits(wave.signal.data + 4)}}).ok());
  MR_REQUIRE(lane.Launch(*graph).ok() && lane.Drained());
  MR_EXPECT(other.IsFound(0));
}

MR_TEST(WithoutMemoryForItsWorkALaunchFails) {
  if (!OnFake()) return;
  Opened opened(0);
  auto kernel = Plan(opened, hal::TransformForm::kReal);
  Wave wave(opened);
  auto stream = opened.NewStream(0);
  std::array<std::byte*, 2> addresses{wave.signal.data, wave.spectrum.data};
  std::array<void*, 2> params{&addresses[0], &addresses[1]};
  FailCalls("cuMemAllocAsync:0:2");
  const Status failed = stream->Launch(1, {.kernel = kernel.get(), .params = params});
  FailCalls("");
  MR_EXPECT(failed.code() == StatusCode::kOutOfMemory);
}

MR_TEST(WhatCufftRefusesNamesItsStatus) {
  if (!OnFake()) return;
  Opened opened(0);
  setenv("MILLRACE_FAKE_CUFFT", "plan:8", 1);
  const Status refused = opened.device->LoadPlan(Row(hal::TransformForm::kComplex)).status();
  unsetenv("MILLRACE_FAKE_CUFFT");
  MR_EXPECT(refused.code() == StatusCode::kUnsupported);
  MR_EXPECT(std::strcmp(refused.note(), "cuFFT answered CUFFT_INVALID_SIZE") == 0);
  hal::TransformPlan both = Row(hal::TransformForm::kComplex);
  both.outer = both.inner = 2;
  MR_EXPECT(opened.device->LoadPlan(both).status().code() == StatusCode::kUnsupported);
}

}  // namespace
