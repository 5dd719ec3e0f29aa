#include "runtime/issue/launch_records.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/channel.h"
#include "runtime/issue/elsewhere.h"
#include "runtime/issue/outputs.h"
#include "runtime/issue/record_ends.h"
#include "runtime/issue/stream_waits.h"
#include "runtime/launches.h"

namespace millrace {

using protocol::ArgKind;

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
  if (limits.max_cooperative_blocks == 0) return refused({StatusCode::kUnsupported, "cooperative launches"});
  Result<uint64_t> most = kernel.MaxCooperativeBlocks(static_cast<uint32_t>(threads), record.shared_bytes);
  if (!most.ok()) return refused(most.status());
  const uint64_t blocks = uint64_t{record.grid_x} * record.grid_y * record.grid_z;
  return beyond("blocks of a cooperative launch", blocks, most.value());
}

template <bool kLooksElsewhere>
Outcome LaunchRecords::Issue(StreamState& stream, Ticket ticket, RecordReader& reader) {
  protocol::LaunchRecord record;
  if (!reader.ReadFields(record) || record.arg_count > protocol::kMaxLaunchEntries) return Outcome::kMalformed;
  const KernelEntry* const found = tables_.kernels.Find(record.kernel);
  if (found == nullptr) {
    if (!tables_.kernels.WaitsFor(record.kernel, channel_.shared_from_this(), stream.index()))
      return Outcome::kMalformed;
    return waits_.Park(stream, ParkReason::kBuild);
  }
  const KernelEntry& kernel = *found;

  uint64_t values[protocol::kMaxLaunchEntries + 2];
  void* params[protocol::kMaxLaunchEntries + 2];
  uint32_t count = 0;
  FailureId cause = 0;
  wide_.clear();
  InFlight& noted = faults_.Next(stream);
  MemoryUse* next_use = noted.Room(record.arg_count);
  const std::span<const std::byte> bytes = reader.Behind(record.arg_count * sizeof(protocol::LaunchArg));
  if (!bytes.empty()) bytes_ = WordsOf(bytes);
  using Others = std::conditional_t<kLooksElsewhere, Elsewhere, std::monostate>;
  [[maybe_unused]] Others others = [&] {
    if constexpr (kLooksElsewhere) {
      const bool needs_grants = kernel.kernel == nullptr || kernel.kernel->NeedsGrants();
      return Elsewhere(channel_, device_, tables_, waits_, stream, record.header.reported, needs_grants);
    } else {
      return std::monostate();
    }
  }();
  if constexpr (kLooksElsewhere) others.Open(reader, record.arg_count);
  for (uint32_t n = 0; n < record.arg_count; ++n) {
    protocol::LaunchArg arg;
    if (!reader.Read(arg)) return Outcome::kMalformed;
    const auto kind = static_cast<ArgKind>(arg.kind);
    if (kind == ArgKind::kScalar) {
      params[count] = &values[count];
      values[count++] = arg.value;
      continue;
    }
    if (kind == ArgKind::kBytes) {
      if (!IsWideParam(arg, bytes.size())) return Outcome::kMalformed;
      wide_.push_back({count, arg.size});
      params[count++] = &bytes_[arg.value / sizeof(uint64_t)];
      continue;
    }
    if (kind == ArgKind::kElsewhere) {
      if constexpr (kLooksElsewhere) {
        const protocol::LaunchArg where = arg;
        const bool is_named = ++n < record.arg_count && reader.Read(arg);
        const bool is_member = arg.kind == static_cast<uint8_t>(ArgKind::kMember);
        if (!is_named || !(is_member || arg.kind == static_cast<uint8_t>(ArgKind::kMemory))) return Outcome::kMalformed;
        Elsewhere::Found found;
        const Elsewhere::Sight sight = others.Find(where, arg, found);
        if (sight == Elsewhere::Sight::kLater) return Outcome::kParked;
        if (sight == Elsewhere::Sight::kMalformed) return Outcome::kMalformed;
        if (found.entry != nullptr) {
          const bool is_needed = Reads(arg.access) || found.address == nullptr;
          if (is_needed) TakeFirst(cause, found.entry->poison.by());
          *next_use++ = {found.entry, UseOf(arg.access, is_needed)};
        }
        const auto address = reinterpret_cast<uintptr_t>(found.address);
        if (!is_member) {
          params[count] = &values[count];
          values[count++] = address;
          continue;
        }
        if (wide_.empty() || !IsMemberOf(arg, wide_.back())) return Outcome::kMalformed;
        static_cast<uint64_t*>(params[wide_.back().index])[arg.size / sizeof(uint64_t)] = address;
        continue;
      } else {
        RecordReader again = reader.FromStart();
        return Issue<true>(stream, ticket, again);
      }
    }
    const MemoryRef* const found_memory = tables_.memory.Find(arg.handle);
    if (found_memory == nullptr) {
      if (waits_.WaitsForMemory(stream, arg.handle)) return waits_.Park(stream, ParkReason::kPoint);
      return Outcome::kMalformed;
    }
    MemoryEntry* const entry = found_memory->get();
    if (arg.value > entry->bytes) return Outcome::kMalformed;
    const bool is_allocated = entry->memory != nullptr;
    if (kind == ArgKind::kVariable && !is_allocated) continue;
    const bool is_needed = Reads(arg.access) || !is_allocated;
    if (is_needed) TakeFirst(cause, entry->poison.by());
    *next_use++ = {entry, UseOf(arg.access, is_needed)};
    if (kind == ArgKind::kVariable) continue;
    const auto base = reinterpret_cast<uintptr_t>(entry->address);
    if (kind == ArgKind::kMember) {
      if (wide_.empty() || !IsMemberOf(arg, wide_.back())) return Outcome::kMalformed;
      static_cast<uint64_t*>(params[wide_.back().index])[arg.size / sizeof(uint64_t)] = base + arg.value;
      continue;
    }
    params[count] = &values[count];
    values[count++] = base + arg.value;
  }
  noted.use_count = static_cast<uint32_t>(next_use - noted.uses.data());
  // To note a record that is not plain may move `noted`.
  [[maybe_unused]] std::conditional_t<kLooksElsewhere, std::vector<MemoryUse>, std::monostate> uses;
  Outputs outputs{.memory = noted.memory()};
  if constexpr (kLooksElsewhere) {
    uses.assign(outputs.memory.begin(), outputs.memory.end());
    outputs = {.memory = uses, .host = others.host()};
    TakeFirst(cause, others.CauseOfHost());
    if (others.failure()) return ends_.Fail(stream, ticket, *others.failure(), outputs);
  }
  if (kernel.kernel == nullptr)
    return ends_.Fail(stream, ticket, {.status = kernel.failure, .kernel = record.kernel}, outputs);
  if (const auto failed = ends_.FailUnready(stream, ticket, cause, outputs)) return *failed;

  if (const auto beyond = BeyondLimits(record, *kernel.kernel)) return ends_.Fail(stream, ticket, *beyond, outputs);

  protocol::FaultSlot* slot = nullptr;
  if (kernel.is_checked) {
    slot = faults_.Take();
    if (slot == nullptr)
      return ends_.Fail(stream, ticket, {.status = FaultReports::NoSlot(), .kernel = record.kernel}, outputs);
    values[count] = reinterpret_cast<uintptr_t>(slot);
    values[count + 1] = reinterpret_cast<uintptr_t>(faults_.word());
    params[count] = &values[count];
    params[count + 1] = &values[count + 1];
    count += 2;
  }
  const bool may_fail = slot != nullptr || !device_.needs_polling();
  if constexpr (kLooksElsewhere) {
    cause = faults_.Enter(stream, {.ticket = ticket,
                                   .memory = uses,
                                   .host = others.host(),
                                   .kernel = record.kernel,
                                   .slot = slot,
                                   .may_fail = may_fail,
                                   .is_foreign = others.is_foreign()});
  } else {
    noted.ticket = ticket;
    noted.kernel = record.kernel;
    noted.slot = slot;
    noted.may_fail = may_fail;
    cause = faults_.Enter(stream, noted);
  }
  if (cause != 0) {
    if (slot != nullptr) faults_.GiveBack({slot});
    return ends_.FailUpstream(stream, ticket, cause, outputs);
  }
  const hal::LaunchRequest request{
      .kernel = kernel.kernel.get(),
      .grid = {record.grid_x, record.grid_y, record.grid_z},
      .block = {record.block_x, record.block_y, record.block_z},
      .shared_bytes = record.shared_bytes,
      .params = {params, count},
      .is_cooperative = IsCooperative(record),
      .kernel_id = record.kernel,
      .wide = wide_,
  };
  const Status status = stream.backend->Launch(ticket, request);
  if (!status.ok()) return ends_.FailDriver(stream, ticket, status, record.kernel, outputs);
  if constexpr (kLooksElsewhere) others.NoteUse(ticket);
  return Outcome::kIssued;
}

template Outcome LaunchRecords::Issue<false>(StreamState&, Ticket, RecordReader&);

}  // namespace millrace
