// What answers of calls between an owner and its device's process look like in the shared block.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/channel_stats.h"
#include "runtime/failures.h"

namespace millrace::remote {

/// A Failure without a pointer.
struct FlatFailure {
  uint64_t id;
  uint64_t first;
  uint64_t last;
  uint64_t cause;
  uint64_t requested_bytes;
  uint64_t free_bytes;
  uint64_t requested;
  uint64_t limit;
  uint32_t status;
  int32_t driver_code;
  uint32_t lost_device;
  uint32_t kernel;
  uint32_t node;
  uint32_t has_fault;
  protocol::FaultSlot fault;
  char note[512];
};

inline FlatFailure Flat(const Failure& failure) {
  FlatFailure flat{failure.id,
                   failure.first,
                   failure.last,
                   failure.cause,
                   failure.requested_bytes,
                   failure.free_bytes,
                   failure.requested,
                   failure.limit,
                   static_cast<uint32_t>(failure.status.code()),
                   failure.status.driver_code(),
                   failure.lost_device,
                   failure.kernel,
                   failure.node,
                   failure.has_fault ? 1u : 0u,
                   failure.fault,
                   {}};
  std::strncpy(flat.note, failure.status.note(), sizeof(flat.note) - 1);
  return flat;
}

/// `note` must live as long as the failure.
inline Failure Unflat(const FlatFailure& flat, const char* note) {
  Failure failure;
  failure.id = flat.id;
  failure.first = flat.first;
  failure.last = flat.last;
  failure.status = Status(static_cast<StatusCode>(flat.status), note, flat.driver_code);
  failure.cause = flat.cause;
  failure.lost_device = flat.lost_device;
  failure.requested_bytes = flat.requested_bytes;
  failure.free_bytes = flat.free_bytes;
  failure.requested = flat.requested;
  failure.limit = flat.limit;
  failure.kernel = flat.kernel;
  failure.node = flat.node;
  failure.has_fault = flat.has_fault != 0;
  failure.fault = flat.fault;
  return failure;
}

}  // namespace millrace::remote
