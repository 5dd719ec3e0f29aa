// Emulates integer divisions that trap.
#pragma once

#include <ucontext.h>

namespace millrace::cpu {

/// `context` is that of a SIGFPE at a div or idiv: skips the instruction and stores a result. A division by zero gives
/// quotient and remainder with all bits set, as on NVIDIA GPUs; the smallest number divided by -1 gives itself and
/// remainder 0. False: another instruction; the context is unchanged. Safe in a signal handler.
[[nodiscard]] bool SkipDivision(ucontext_t& context);

}  // namespace millrace::cpu
