// Textures of the CUDA backend, on the fake driver or on this machine's (see cuda_backend_test.cpp).
#include <cstring>

#include "cuda_fixture.h"

namespace {

using namespace millrace;           // NOLINT: the test speaks of little else
using namespace millrace::testing;  // NOLINT

constexpr protocol::TextureShape kShape{
    .width = 5, .height = 3, .depth = 2, .format = 7, .channels = 2, .has_surface = 1};
constexpr uint64_t kPixelBytes = 5 * 3 * 2 * 2 * sizeof(float);

std::unique_ptr<hal::Memory> MakeArray(Opened& opened) {
  auto array = opened.device->AllocateArray(kShape);
  MR_CHECK(array.ok());
  return std::move(array).value();
}
std::unique_ptr<hal::Memory> MakeObject(Opened& opened, const hal::Memory& array, uint32_t flags) {
  auto object = opened.device->CreateTexture({.address = array.address(), .shape = kShape, .flags = flags});
  MR_CHECK(object.ok());
  return std::move(object).value();
}
constexpr auto kSurface = static_cast<uint32_t>(protocol::TextureFlag::kSurface);

MR_TEST(ElementsGoToATextureAndBack) {
  Opened opened(0);
  const auto stream = opened.NewStream(0);
  Pinned source(*opened.device, kPixelBytes);
  Pinned sink(*opened.device, kPixelBytes);
  for (size_t n = 0; n < kPixelBytes; ++n) source.data[n] = static_cast<std::byte>(n);
  Ticket ticket = 0;
  auto there = stream->Allocate(++ticket, kPixelBytes);
  MR_REQUIRE(there.ok());
  auto back = stream->Allocate(++ticket, kPixelBytes);
  MR_REQUIRE(back.ok());
  auto array = MakeArray(opened);
  MR_EXPECT_EQ(array->bytes(), kPixelBytes);
  std::byte* const memory = there.value()->address();
  MR_EXPECT(stream->Copy(++ticket, memory, source.data, kPixelBytes).ok());
  MR_EXPECT(stream->CopyArray(++ticket, {array->address(), memory, kShape, true}).ok());
  MR_EXPECT(stream->CopyArray(++ticket, {array->address(), back.value()->address(), kShape, false}).ok());
  MR_EXPECT(stream->Copy(++ticket, sink.data, back.value()->address(), kPixelBytes).ok());
  MR_REQUIRE(Finish(*stream, ticket));
  MR_EXPECT(std::memcmp(source.data, sink.data, kPixelBytes) == 0);
  MR_EXPECT(stream->Free(++ticket, std::move(array)).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(there).value()).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(back).value()).ok());
  MR_REQUIRE(Finish(*stream, ticket));
}

MR_TEST(TexturesAreFreedBehindTheirStream) {
  Opened opened(0);
  const auto stream = opened.NewStream(0);
  auto array = MakeArray(opened);
  auto texture = MakeObject(opened, *array, 0);
  auto surface = MakeObject(opened, *array, kSurface);
  MR_EXPECT(texture->address() != nullptr && surface->address() != nullptr);
  Gate gate(opened);
  MR_REQUIRE(gate.Launch(*stream, 1).ok());
  Ticket ticket = 1;
  MR_EXPECT(stream->Free(++ticket, std::move(texture)).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(surface)).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(array)).ok());
  // The objects have no memory; the array counts until its last use is over.
  MR_EXPECT_EQ(opened.device->KeptBytes(), kPixelBytes);
  gate.Open();
  MR_REQUIRE(Finish(*stream, ticket));
  MR_EXPECT(Eventually([&] { return opened.device->KeptBytes() == 0; }));
}

MR_TEST(LinearMemoryHasTexturesOfOneAndTwoDimensions) {
  Opened opened(0);
  const auto stream = opened.NewStream(0);
  Ticket ticket = 0;
  auto memory = stream->Allocate(++ticket, 4096);
  MR_REQUIRE(memory.ok());
  hal::TextureRequest request{.address = memory.value()->address(), .pitch = 64, .shape = {16, 0, 0, 7, 1, 0}};
  auto line = opened.device->CreateTexture(request);
  MR_REQUIRE(line.ok());
  request.shape.height = 4;
  request.filter = protocol::TextureFilter::kLinear;
  auto plane = opened.device->CreateTexture(request);
  MR_REQUIRE(plane.ok());
  MR_EXPECT(line.value()->address() != plane.value()->address());
  MR_EXPECT(stream->Free(++ticket, std::move(line).value()).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(plane).value()).ok());
  MR_EXPECT(stream->Free(++ticket, std::move(memory).value()).ok());
  MR_REQUIRE(Finish(*stream, ticket));
}

MR_TEST(FailuresAreTold) {
  Opened opened(0);
  if (!OnFake()) return;
  auto array = MakeArray(opened);
  FailCalls("cuTexObjectCreate:0:2");
  MR_EXPECT_EQ(opened.device->CreateTexture({.address = array->address(), .shape = kShape}).status().code(),
               StatusCode::kOutOfMemory);
  FailCalls("cuArray3DCreate:0:2");
  MR_EXPECT_EQ(opened.device->AllocateArray(kShape).status().code(), StatusCode::kOutOfMemory);
  FailCalls("");
}

}  // namespace
