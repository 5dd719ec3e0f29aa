// libFuzzer's target for records and definitions of graphs: an input is a list of them. `scripts/fuzz.mjs` runs it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "damaged_device.h"

namespace millrace::testing {
namespace {

/// Before each record: its bytes in the input, so that the header's own size may be wrong.
using Length = uint16_t;
constexpr size_t kMostRecords = 16;
/// Of one device, because opening one takes longer than a thousand records. So what an input does may need the ones
/// before it; a device that has had none shows whether it does.
constexpr uint32_t kInputs = 500;

void TryAll(std::span<const std::byte> input) {
  static std::optional<DamagedDevice> opened;
  static uint32_t tried = 0;
  if (tried++ % kInputs == 0) opened.emplace();
  DamagedDevice& device = *opened;
  for (size_t n = 0; n < kMostRecords && input.size() > sizeof(Length); ++n) {
    Length length;
    std::memcpy(&length, input.data(), sizeof(length));
    input = input.subspan(sizeof(length));
    // In memory of its own: a byte behind it is a byte too far.
    const ByteList record(input.begin(),
                          input.begin() + static_cast<ptrdiff_t>(std::min<size_t>(length, input.size())));
    input = input.subspan(record.size());
    device.Try(record);
  }
  if (device.Works()) return;
  std::puts("the device stands still after this input");
  std::abort();
}

/// Writes an input for each kind of record, and one with all of them.
void WriteSeeds(const char* folder) {
  DamagedDevice device;
  ByteList all;
  size_t n = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    char path[4096];
    std::snprintf(path, sizeof(path), "%s/seed-%02zu", folder, n++);
    std::FILE* const file = std::fopen(path, "wb");
    if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
    std::fclose(file);
  };
  for (const ByteList& record : WholeInputs(device.id())) {
    const auto length = static_cast<Length>(record.size());
    ByteList one(sizeof(length));
    std::memcpy(one.data(), &length, sizeof(length));
    one.insert(one.end(), record.begin(), record.end());
    all.insert(all.end(), one.begin(), one.end());
    write(one);
  }
  write(all);
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  if (const char* const folder = std::getenv("MILLRACE_FUZZ_SEEDS")) millrace::testing::WriteSeeds(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::TryAll(std::as_bytes(std::span(data, size)));
  return 0;
}
