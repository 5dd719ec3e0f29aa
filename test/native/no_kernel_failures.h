// For tests of a timeline slot in which no kernel runs.
#pragma once

#include "runtime/streams.h"

namespace millrace {

struct NoKernelFailures final : KernelFailures {
  void KernelFailed(StreamState&, Ticket, const hal::KernelFailure&) noexcept override {}
};

}  // namespace millrace
