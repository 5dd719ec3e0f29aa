// Relations between the protocol's limits that the generated header does not assert.
#include "hal/hal.h"
#include "protocol/protocol.gen.h"
#include "testing.h"

namespace millrace {
namespace {

MR_TEST(TheLargestLaunchFitsARecord) {
  // Each parameter by value begins a word.
  const uint64_t args = uint64_t{protocol::kMaxLaunchEntries} * sizeof(protocol::LaunchArg) +
                        uint64_t{protocol::kMaxLaunchArgs} * (sizeof(uint64_t) - 1);
  const uint64_t largest = sizeof(protocol::LaunchRecord) + args + protocol::kMaxParameterBytes;
  MR_EXPECT(largest <= protocol::kMaxRecordBytes);
}

MR_TEST(ATimelineSlotFillsOneCacheLine) {
  MR_EXPECT_EQ(sizeof(protocol::TimelineSlot), 64u);
}

MR_TEST(AFailedStatusLeavesTheFunction) {
  const auto fails = []() -> Status {
    MR_TRY(Status(StatusCode::kOutOfMemory, "probe", 2));
    return Status();
  };
  const Status status = fails();
  MR_EXPECT(status.code() == StatusCode::kOutOfMemory);
  MR_EXPECT_EQ(status.driver_code(), 2);
}

}  // namespace
}  // namespace millrace
