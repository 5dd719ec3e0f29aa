// Modules: kernels of one image, its variables, and the effects of failures on them.
#include "channel_rig.h"

namespace millrace::testing {
namespace {

using protocol::Access;

/// The arguments of a launch: memory, then variables.
struct Given {
  protocol::ArgKind kind;
  uint32_t handle;
  Access access;
};

Ticket Launch(Rig& rig, uint32_t stream, uint32_t kernel, const std::vector<Given>& given) {
  std::vector<std::byte> bytes(sizeof(protocol::LaunchRecord) + given.size() * sizeof(protocol::LaunchArg));
  protocol::LaunchRecord record{.kernel = kernel, .arg_count = static_cast<uint32_t>(given.size())};
  record.grid_x = record.grid_y = record.grid_z = record.block_x = record.block_y = record.block_z = 1;
  const protocol::RecordHeader header{static_cast<uint16_t>(Opcode::kLaunch), 0, static_cast<uint32_t>(bytes.size()),
                                      stream, 0};
  std::memcpy(&record, &header, sizeof(header));
  std::memcpy(bytes.data(), &record, sizeof(record));
  std::byte* at = bytes.data() + sizeof(record);
  for (const Given& each : given) {
    const protocol::LaunchArg arg{
        .kind = static_cast<uint8_t>(each.kind), .access = static_cast<uint8_t>(each.access), .handle = each.handle};
    std::memcpy(at, &arg, sizeof(arg));
    at += sizeof(arg);
  }
  return rig.channel->Submit(bytes).ticket;
}

constexpr auto kMemory = protocol::ArgKind::kMemory;
constexpr auto kVariable = protocol::ArgKind::kVariable;
constexpr uint32_t kModule = 3;

MR_TEST(kernels_of_a_module_are_installed_without_an_image_of_their_own) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {.request = {.entry = "one"}, .module = kModule}).ok());
  const Ticket launched = Launch(rig, a, Handle(0), {});
  MR_EXPECT(rig.Completes(a, launched));
  MR_EXPECT(rig.Failures(a).empty());
}

MR_TEST(a_late_failure_of_a_given_up_kernel_does_not_affect_the_next_kernel_of_its_index) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const uint32_t next = Handle(0, 2);
  const Ticket launched = Launch(rig, a, next, {});
  MR_EXPECT(rig.Parks(a, ParkReason::kBuild));
  rig.channel->FailKernel(Handle(0), Status(StatusCode::kUnavailable, "there was no compiler"));
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {}).ok());
  MR_EXPECT(rig.channel->InstallKernel(next, {}).ok());
  MR_EXPECT(rig.Completes(a, launched));
  MR_EXPECT(rig.Failures(a).empty());
}

MR_TEST(a_variable_is_memory_that_records_wait_for_until_it_is_bound) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  const Ticket filled = rig.Fill(a, Handle(5), 16);
  MR_EXPECT(rig.Parks(a, ParkReason::kPoint));
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  const auto bound = rig.channel->BindVariable(Handle(5), kModule, "counts", 16);
  MR_EXPECT(bound.ok());
  MR_EXPECT(rig.Completes(a, filled));
  MR_EXPECT(rig.Failures(a).empty());
  MR_EXPECT(rig.channel->MemoryAddress(Handle(5)).has_value());
  // It was never allocated.
  MR_EXPECT_EQ(rig.channel->Stats().live_memory, 0u);
}

MR_TEST(a_variable_of_another_size_or_name_is_not_bound) {
  RecordingBackend backend;
  Rig rig(backend);
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  auto bound = rig.channel->BindVariable(Handle(5), kModule, "counts", 12);
  MR_EXPECT(bound.ok() && bound.value() == 16);
  MR_EXPECT(!rig.channel->MemoryAddress(Handle(5)).has_value());
  MR_EXPECT(rig.channel->BindVariable(Handle(5), kModule, "count", 16).status().code() == StatusCode::kArgument);
}

MR_TEST(what_uses_a_variable_that_is_not_there_fails_of_its_failure_and_kernels_run) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {.module = kModule}).ok());
  const FailureId failure = Channel::ReserveFailure();
  const Ticket launched = Launch(rig, a, Handle(0), {{kVariable, Handle(5), Access::kReadWrite}});
  const Ticket filled = rig.Fill(a, Handle(5), 16);
  rig.channel->FailVariable(Handle(5), 16, failure);
  MR_EXPECT(rig.Completes(a, filled));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 1);
  MR_EXPECT(failures[0].first == filled && failures[0].status.code() == StatusCode::kUpstream);
  MR_EXPECT_EQ(failures[0].cause, failure);
  MR_EXPECT(launched < filled);
}

MR_TEST(a_launch_that_fails_poisons_the_variables_it_writes_and_those_it_reads_stop_it) {
  RecordingBackend backend;
  Rig rig(backend);
  const uint32_t a = rig.Stream();
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  MR_EXPECT(rig.channel->InstallKernel(Handle(0), {.module = kModule}).ok());
  MR_EXPECT(rig.channel->BindVariable(Handle(5), kModule, "counts", 16).ok());
  MR_EXPECT(rig.channel->BindVariable(Handle(6), kModule, "counts", 16).ok());
  MR_EXPECT(rig.Completes(a, rig.Alloc(a, Handle(1), 16)));
  const std::vector<Given> writing = {{kMemory, Handle(1), Access::kWrite},
                                      {kVariable, Handle(5), Access::kReadWrite},
                                      {kVariable, Handle(6), Access::kRead}};
  backend.controls.refuse_launches = 1;
  const Ticket failed = Launch(rig, a, Handle(0), writing);
  const Ticket stopped = Launch(rig, a, Handle(0), writing);
  const Ticket cleared = rig.Fill(a, Handle(5), 16);
  const Ticket runs = Launch(rig, a, Handle(0), writing);
  MR_EXPECT(rig.Completes(a, runs));
  const auto failures = rig.Failures(a);
  MR_REQUIRE(failures.size() == 2);
  MR_EXPECT(failures[0].first == failed && failures[0].last == failed);
  MR_EXPECT(failures[1].first == stopped && failures[1].last == stopped);
  MR_EXPECT_EQ(failures[1].cause, failures[0].id);
  MR_EXPECT(cleared < runs);
}

MR_TEST(a_closed_device_loads_no_module) {
  RecordingBackend backend;
  Rig rig(backend);
  MR_EXPECT(rig.channel->LoadModule(kModule, {}).ok());
  rig.channel->Close();
  MR_EXPECT(rig.channel->LoadModule(kModule + 1, {}).code() == StatusCode::kState);
  MR_EXPECT(rig.channel->BindVariable(Handle(5), kModule, "counts", 16).status().code() == StatusCode::kState);
}

}  // namespace
}  // namespace millrace::testing
