// The CUDA backend on a device without cooperative launches, which an environment variable selects in the fake driver.
#include <cstdlib>

#include "cuda_fixture.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

MR_TEST(ADeviceWithoutCooperativeLaunchesSaysSo) {
  Opened opened(0);
  auto stream = opened.NewStream(0);
  Pinned host(*opened.device, 4);
  auto* count = host.As<unsigned>();
  *count = 0;
  auto kernel = opened.Load("meet");
  MR_EXPECT_EQ(kernel->limits().max_cooperative_blocks, 0u);
  MR_EXPECT(!kernel->limits().blocks_at_once.empty());

  void* params[] = {&count};
  hal::LaunchRequest request = {
      .kernel = kernel.get(), .grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 0, .params = params};
  request.is_cooperative = true;
  MR_EXPECT_EQ(static_cast<int>(stream->Launch(1, request).code()), static_cast<int>(StatusCode::kUnsupported));
  request.is_cooperative = false;
  MR_EXPECT(stream->Launch(1, request).ok());
  MR_REQUIRE(Finish(*stream, 1));
  MR_EXPECT_EQ(*count, 1u);
}

}  // namespace
