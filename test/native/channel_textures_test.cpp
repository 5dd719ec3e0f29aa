// The records of textures: shapes that do not fit are refused, a texture waits for its memory, and inherits its
// failure.
#include <vector>

#include "channel_rig.h"

namespace millrace::testing {
namespace {

constexpr protocol::TextureShape kShape{
    .width = 4, .height = 2, .depth = 0, .format = 7, .channels = 1, .has_surface = 0};
constexpr uint64_t kTextureBytes = 32;

protocol::AllocArrayRecord Array(uint32_t handle, protocol::TextureShape shape = kShape,
                                 uint64_t bytes = kTextureBytes) {
  return {.handle = handle, .bytes = bytes, .shape = shape};
}
protocol::CreateTextureRecord Texture(uint32_t handle, uint32_t source) {
  return {.handle = handle, .source = source, .shape = kShape};
}

StatusCode CodeOf(Rig& rig, uint32_t stream, Ticket ticket) {
  MR_EXPECT(rig.Completes(stream, ticket));
  for (const auto& failure : rig.Failures(stream)) {
    if (failure.first <= ticket && ticket <= failure.last) return failure.status.code();
  }
  return StatusCode::kOk;
}

MR_TEST(a_texture_waits_for_its_memory_and_inherits_the_failure_of_it) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t b = rig.Stream();
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  // It is submitted before its memory is.
  const Ticket created = rig.Submit(b, Texture(Handle(1), Handle(0)));
  const Ticket launched = rig.Launch(b, Handle(0), Handle(1), protocol::Access::kRead);
  MR_EXPECT(rig.Completed(b) < created);
  // This backend has no textures.
  const Ticket allocated = rig.Submit(a, Array(Handle(0)));
  MR_EXPECT_EQ(CodeOf(rig, a, allocated), StatusCode::kUnsupported);
  MR_EXPECT_EQ(CodeOf(rig, b, created), StatusCode::kOk);
  MR_EXPECT_EQ(CodeOf(rig, b, launched), StatusCode::kUpstream);
  const Ticket freed = rig.Free(b, Handle(1));
  MR_EXPECT_EQ(CodeOf(rig, b, freed), StatusCode::kOk);
}

MR_TEST(shapes_that_do_not_fit_are_refused) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  rig.Alloc(a, Handle(0), kTextureBytes);
  const auto is_refused = [&](auto record) { return CodeOf(rig, a, rig.Submit(a, record)) == StatusCode::kInternal; };
  const auto shaped = [](auto change) {
    protocol::TextureShape shape = kShape;
    change(shape);
    return shape;
  };
  const std::vector<protocol::TextureShape> wrong = {shaped([](auto& shape) { shape.width = 0; }),
                                                     shaped([](auto& shape) { shape.width = 1u << 31; }),
                                                     shaped([](auto& shape) { shape.height = 1u << 31; }),
                                                     shaped([](auto& shape) { shape.depth = 1u << 31; }),
                                                     shaped([](auto& shape) { shape.channels = 3; }),
                                                     shaped([](auto& shape) { shape.format = 8; }),
                                                     shaped([](auto& shape) { shape.height = 0, shape.depth = 2; })};
  for (const protocol::TextureShape& shape : wrong) MR_EXPECT(is_refused(Array(Handle(1), shape)));
  MR_EXPECT(is_refused(Array(Handle(1), kShape, kTextureBytes + 1)));
  MR_EXPECT(is_refused(Array(Handle(0))));

  // Linear memory, which has the elements or not.
  auto linear = Texture(Handle(2), Handle(0));
  MR_EXPECT(is_refused(linear));
  linear.pitch = 15;
  MR_EXPECT(is_refused(linear));
  linear.pitch = 17;
  MR_EXPECT(is_refused(linear));
  linear.pitch = 16;
  linear.offset = 8;
  MR_EXPECT(is_refused(linear));
  linear.offset = 0;
  linear.address_x = 4;
  MR_EXPECT(is_refused(linear));
  linear.address_x = 3;
  linear.filter = 2;
  MR_EXPECT(is_refused(linear));

  protocol::CopyArrayRecord copy{.array = Handle(0), .memory = Handle(0), .offset = 8, .shape = kShape};
  MR_EXPECT(is_refused(copy));
  copy.offset = 0;
  copy.shape.width = 5;
  MR_EXPECT(is_refused(copy));
  copy.array = Handle(9);
  copy.shape = kShape;
  rig.Alloc(a, Handle(9), 2 * kTextureBytes);
  MR_EXPECT(is_refused(copy));
}

}  // namespace
}  // namespace millrace::testing
