// Integer divisions that the processor refuses.
#pragma once

#include <ucontext.h>

namespace millrace::cpu {

/// The context of a SIGFPE at a div or idiv: moves it behind the instruction, with a result. Divided by zero, quotient
/// and remainder have all bits set, as on NVIDIA GPUs; the smallest number divided by -1 is itself, and the remainder
/// 0. False: it stands at another instruction, and is as before. Safe in a signal handler.
[[nodiscard]] bool SkipDivision(ucontext_t& context);

}  // namespace millrace::cpu
