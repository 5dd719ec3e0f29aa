// The device's pool: memory is never a reason for one stream to wait for another. On the fake driver or on this
// machine's (see cuda_backend_test.cpp).
#include "cuda/driver_types.h"
#include "cuda_fixture.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

int Switch(cuda::CUmemPool_attribute attribute) {
  cuda::CUmemoryPool pool = nullptr;
  const auto find = FromDriverLibrary<int (*)(cuda::CUmemoryPool*, int)>("cuDeviceGetDefaultMemPool");
  const auto read = FromDriverLibrary<int (*)(cuda::CUmemoryPool, unsigned, void*)>("cuMemPoolGetAttribute");
  int value = -1;
  MR_CHECK(find(&pool, 0) == 0 && read(pool, attribute, &value) == 0);
  return value;
}

MR_TEST(AnOpenDevicesPoolMakesNoOrderOfItsOwn) {
  Opened opened(0);
  MR_EXPECT_EQ(Switch(cuda::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES), 0);
  MR_EXPECT_EQ(Switch(cuda::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES), 1);
  MR_EXPECT_EQ(Switch(cuda::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
}

MR_TEST(WhereMemoryIsShortAStreamIsToldSoInsteadOfWaiting) {
  if (!OnFake()) return;
  Opened opened(0);
  auto stream = opened.NewStream(0);
  auto other = opened.NewStream(1);
  Gate gate(opened);
  const uint64_t most = opened.device->FreeBytes() / 4 * 3;
  auto first = stream->Allocate(1, most);
  MR_REQUIRE(first.ok());
  MR_REQUIRE(gate.Launch(*stream, 2).ok());
  MR_REQUIRE(stream->Free(3, std::move(first).value()).ok());
  auto refused = other->Allocate(1, most);
  MR_EXPECT(refused.status().code() == StatusCode::kOutOfMemory);
  if (refused.ok()) {
    gate.Open();
    MR_REQUIRE(Finish(*stream, 3) && Finish(*other, 1));
    return;
  }
  // The refusal does not affect the stream, which continues.
  MR_REQUIRE(other->Nop(1).ok());
  MR_REQUIRE(Finish(*other, 1));
  gate.Open();
  MR_REQUIRE(Finish(*stream, 3));
  auto second = other->Allocate(2, most);
  MR_REQUIRE(second.ok());
  MR_REQUIRE(other->Free(3, std::move(second).value()).ok());
  MR_REQUIRE(Finish(*other, 3));
}

MR_TEST(APoolThatCannotBeSetUpIsNoPoolToOpenADeviceWith) {
  if (!OnFake()) return;
  FailCalls("cuMemPoolSetAttribute:0:1");
  alignas(4096) static TimelineSlot slots[4] = {};
  const auto refused = Cuda().Open(1, slots);
  FailCalls("");
  MR_EXPECT(!refused.ok());
}

MR_TEST(MemoryThatNobodyFreedIsNotCountedOnceTheDeviceIsClosed) {
  for (int round = 0; round < 3; ++round) {
    Opened opened(0);
    auto use = opened.device->PoolUse();
    MR_REQUIRE(use.ok());
    MR_EXPECT_EQ(use.value().used, 0u);
    MR_EXPECT_EQ(use.value().used_high, 0u);
    MR_EXPECT_EQ(use.value().reserved, 0u);
    MR_EXPECT_EQ(use.value().reserved_high, 0u);
    auto stream = opened.NewStream(0);
    auto memory = stream->Allocate(1, 64 << 20);
    MR_REQUIRE(memory.ok() && Finish(*stream, 1));
    use = opened.device->PoolUse();
    MR_REQUIRE(use.ok());
    MR_EXPECT(use.value().used >= uint64_t{64} << 20);
    // It outlives its stream, like an array that exists when its device is closed.
    stream.reset();
  }
}

}  // namespace
