// The pause instruction of spin loops.
#pragma once

namespace millrace::cpu {

inline void RelaxCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace millrace::cpu
