// Records and definitions of graphs with damaged fields. No byte is read outside of a record, and none is touched
// outside of the memory that it names; the device works afterwards. MILLRACE_RECORDS is the number of inputs.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "damaged_device.h"

namespace millrace::testing {
namespace {

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}
  size_t Below(size_t count) { return random_() % count; }

  ByteList Of(ByteList bytes) {
    for (size_t n = Below(4); n > 0; --n) {
      const size_t width = size_t{1} << Below(4);
      const size_t at = Below(bytes.size() / width) * width;
      uint64_t value = random_();
      if (Below(4) != 0) value = kValues[Below(kValues.size())];
      if (Below(3) == 0) {
        uint64_t old = 0;
        std::memcpy(&old, &bytes[at], width);
        value = old + Below(17) - 8;
      }
      std::memcpy(&bytes[at], &value, width);
    }
    if (Below(4) == 0) bytes.resize(kHeadBytes + Below(bytes.size() + 8 - kHeadBytes));
    if (Below(4) != 0) {
      const auto size = static_cast<uint32_t>(bytes.size());
      std::memcpy(&bytes[offsetof(protocol::RecordHeader, size)], &size, sizeof(size));
    }
    const auto stream = static_cast<uint32_t>(Below(kStreams));
    std::memcpy(&bytes[offsetof(protocol::RecordHeader, stream)], &stream, sizeof(stream));
    return bytes;
  }

 private:
  static constexpr std::array<uint64_t, 22> kValues = {
      0,   1,    2,    3,         4,         7,          8,          16,        63,         64,         65,
      128, 4095, 4096, Handle(0), Handle(1), Handle(20), UINT32_MAX, INT32_MAX, 1ull << 63, UINT64_MAX, UINT16_MAX};
  std::mt19937_64 random_;
};

MR_TEST(damaged_records_touch_no_other_memory_and_leave_a_device_that_works) {
  const char* const given = std::getenv("MILLRACE_RECORDS");
  const size_t count = given == nullptr ? 25'000 : std::strtoull(given, nullptr, 10);
  constexpr size_t kSeries = 1000;
  for (size_t done = 0; done < count; done += kSeries) {
    Damage damage(done);
    DamagedDevice device;
    const std::vector<ByteList> whole = WholeInputs(device.id());
    for (size_t n = 0; n < kSeries; ++n) device.Try(damage.Of(whole[damage.Below(whole.size())]));
    if (!device.Works()) {
      std::printf("  the device stands still after the series %zu\n", done);
      MR_REQUIRE(false);
    }
  }
}

MR_TEST(undamaged_records_do_what_they_say) {
  DamagedDevice device;
  std::vector<ByteList> whole = WholeInputs(device.id());
  whole.pop_back();
  for (const ByteList& each : whole) device.Try(each);
  // This backend has no textures, and the function of an EXTERNAL record fails here.
  for (const Failure& failure : device.FailuresOfFirstStream()) {
    const StatusCode code = failure.status.code();
    MR_EXPECT(code == StatusCode::kUnsupported || code == StatusCode::kFunction || code == StatusCode::kUpstream);
  }
}

}  // namespace
}  // namespace millrace::testing
