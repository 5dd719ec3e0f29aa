// Launches, and the fault reports of checked launches.

#include <optional>
#include <utility>

#include "runtime/channel.h"

namespace millrace {

using protocol::Access;
using protocol::ArgKind;

namespace {

constexpr bool Reads(uint8_t access) {
  return (access & static_cast<uint8_t>(Access::kRead)) != 0;
}
constexpr bool Writes(uint8_t access) {
  return (access & static_cast<uint8_t>(Access::kWrite)) != 0;
}

bool IsCooperative(const protocol::LaunchRecord& record) {
  return (record.flags & static_cast<uint32_t>(protocol::LaunchFlag::kCooperative)) != 0;
}

/// A failure if the launch exceeds the kernel's limits. The owner could not check them, because the kernel was not
/// built yet at the call.
std::optional<Failure> BeyondLimits(const protocol::LaunchRecord& record, hal::Kernel& kernel) {
  const hal::KernelLimits& limits = kernel.limits();
  const auto beyond = [&](const char* what, uint64_t requested, uint64_t limit) -> std::optional<Failure> {
    if (requested <= limit) return std::nullopt;
    return Failure{.status = Status(StatusCode::kLaunchFailed, what),
                   .requested = requested,
                   .limit = limit,
                   .kernel = record.kernel};
  };
  const uint64_t threads = uint64_t{record.block_x} * record.block_y * record.block_z;
  if (auto failure = beyond("threads of a block", threads, limits.max_threads_per_block)) return failure;
  if (auto failure = beyond("bytes of dynamic shared memory", record.shared_bytes, limits.max_dynamic_shared_bytes)) {
    return failure;
  }
  if (!IsCooperative(record)) return std::nullopt;
  const auto refused = [&](Status status) { return Failure{.status = status, .kernel = record.kernel}; };
  if (limits.max_blocks_together == 0) return refused({StatusCode::kUnsupported, "cooperative launches"});
  Result<uint64_t> together = kernel.BlocksTogether(static_cast<uint32_t>(threads), record.shared_bytes);
  if (!together.ok()) return refused(together.status());
  const uint64_t blocks = uint64_t{record.grid_x} * record.grid_y * record.grid_z;
  return beyond("blocks of a cooperative launch", blocks, together.value());
}

}  // namespace

Channel::Outcome Channel::IssueLaunch(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::LaunchRecord record;
  if (!reader.Read(record) || record.arg_count > protocol::kMaxLaunchArgs) return FailMalformed(stream, ticket);
  KernelEntry& kernel = tables_.kernels.FindOrBind(record.kernel);
  if (kernel.state == KernelEntry::State::kPending) {
    kernel.parked.push_back(&stream);
    return Park(stream, ParkReason::kBuild);
  }

  uint64_t values[protocol::kMaxLaunchArgs + 2];
  void* params[protocol::kMaxLaunchArgs + 2];
  uint32_t count = 0;
  uint32_t cause = 0;
  outputs_scratch_.clear();
  overwritten_scratch_.clear();
  output_names_scratch_.clear();
  for (uint32_t n = 0; n < record.arg_count; ++n) {
    protocol::LaunchArg arg;
    if (!reader.Read(arg)) return FailMalformed(stream, ticket);
    const auto kind = static_cast<ArgKind>(arg.kind);
    if (kind == ArgKind::kScalar) {
      params[count] = &values[count];
      values[count++] = arg.value;
      continue;
    }
    if (WaitsForMemory(stream, arg.handle)) return Park(stream, ParkReason::kPoint);
    MemoryRef* entry = tables_.memory.Find(arg.handle);
    if (entry == nullptr || arg.value > (*entry)->bytes) return FailMalformed(stream, ticket);
    if (kind == ArgKind::kVariable && (*entry)->memory == nullptr) continue;
    if (Writes(arg.access)) {
      outputs_scratch_.push_back(entry);
      if (!device_.needs_polling()) output_names_scratch_.push_back(arg.handle);
    }
    const bool is_needed = Reads(arg.access) || (*entry)->memory == nullptr;
    if (cause == 0 && is_needed) cause = (*entry)->poison.by();
    if (!is_needed) overwritten_scratch_.push_back(entry);
    if (kind == ArgKind::kVariable) continue;
    params[count] = &values[count];
    values[count] = arg.value;
    if ((*entry)->memory != nullptr) values[count] += reinterpret_cast<uintptr_t>((*entry)->memory->address());
    ++count;
  }
  const Outputs outputs{.memory = outputs_scratch_};
  if (kernel.state == KernelEntry::State::kFailed)
    return Fail(stream, ticket, {.status = kernel.failure, .kernel = record.kernel}, outputs);
  if (const auto failed = FailUnready(stream, ticket, cause, outputs)) return *failed;

  if (const auto beyond = BeyondLimits(record, *kernel.kernel)) return Fail(stream, ticket, *beyond, outputs);

  protocol::FaultSlot* slot = nullptr;
  if (kernel.is_checked) {
    slot = TakeFaultSlot(stream);
    if (slot == nullptr) return Fail(stream, ticket, {.status = NoSlot(), .kernel = record.kernel}, outputs);
    values[count] = reinterpret_cast<uintptr_t>(slot);
    values[count + 1] = reinterpret_cast<uintptr_t>(&stream.slot().fault);
    params[count] = &values[count];
    params[count + 1] = &values[count + 1];
    count += 2;
  }
  for (MemoryRef* entry : overwritten_scratch_) (*entry)->poison.Overwrite();
  for (size_t n = 0; n < output_names_scratch_.size(); ++n) {
    output_names_scratch_[n] |= uint64_t{(*outputs_scratch_[n])->poison.version()} << 32;
  }
  const hal::LaunchRequest request{
      .kernel = kernel.kernel.get(),
      .grid = {record.grid_x, record.grid_y, record.grid_z},
      .block = {record.block_x, record.block_y, record.block_z},
      .shared_bytes = record.shared_bytes,
      .params = {params, count},
      .is_cooperative = IsCooperative(record),
      .kernel_id = record.kernel,
      .outputs = output_names_scratch_,
  };
  // Add the watch before the launch: a report may arrive before the backend's call returns.
  if (slot != nullptr) stream.faults.Add(ticket, record.kernel, slot, outputs_scratch_);
  const Status status = stream.backend->Launch(ticket, request);
  if (!status.ok()) return FailDriver(stream, ticket, status, record.kernel, outputs);
  return Outcome::kIssued;
}

Status Channel::NoSlot() {
  return Status(StatusCode::kOutOfMemory, "no memory for fault reports");
}

// Thread: one that runs kernels and holds no lock.
void Channel::KernelFailed(StreamState& stream, Ticket ticket, const hal::KernelFailure& failed) noexcept {
  const Failure failure{.id = NextFailureId(),
                        .first = ticket,
                        .last = ticket,
                        .status = failed.status,
                        .kernel = failed.kernel,
                        .has_fault = true,
                        .fault = failed.report};
  const uint32_t id = stream.failures.Add(failure, stream.slot());
  for (const uint64_t output : failed.outputs) {
    const std::optional<MemoryRef> found = tables_.memory.Look(static_cast<uint32_t>(output));
    if (found) (*found)->poison.SetIf(static_cast<uint32_t>(output >> 32), id);
  }
  if (failed.status.code() == StatusCode::kDeviceLost) loss_.Mark(failed.status);
}

protocol::FaultSlot* Channel::TakeFaultSlot(StreamState& stream) {
  stream.faults.Retire(stream.Completed(), fault_slots_);
  return fault_slots_.Take(device_.device());
}

void Channel::CollectFaults(StreamState& stream) {
  // Keep the word set until the reports are failures: an owner that saw it cleared would treat the launch as a success.
  constexpr uint32_t kCollecting = 2;
  const std::atomic_ref flag(stream.slot().fault);
  flag.store(kCollecting, std::memory_order_seq_cst);
  stream.faults.Collect([&](FaultWatch::Watched& watched) {
    const bool is_copy = watched.kernel == 0;
    const Failure failure{.id = NextFailureId(),
                          .first = watched.ticket,
                          .last = watched.ticket,
                          .status = is_copy ? Gone() : Status(StatusCode::kBounds, "an array access is out of bounds"),
                          .kernel = watched.kernel,
                          .has_fault = !is_copy,
                          .fault = *watched.slot};
    const uint32_t id = stream.failures.Add(failure, stream.slot());
    for (const FaultWatch::Output& output : watched.outputs) output.entry->poison.SetIf(output.version, id);
    watched.outputs.clear();
  });
  // Clear it, unless another kernel has set it meanwhile.
  uint32_t collecting = kCollecting;
  flag.compare_exchange_strong(collecting, 0);
}

}  // namespace millrace
