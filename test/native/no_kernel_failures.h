// For tests of a timeline slot in which no kernel runs.
#pragma once

#include "runtime/stream_state.h"

namespace millrace {

struct NoKernelFailures final : KernelFailures {
  void KernelFailed(StreamState&, Ticket, const hal::KernelFailure&) noexcept override {}
};

}  // namespace millrace
