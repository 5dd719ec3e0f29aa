// Switches between the stacks of a block's threads.
//
// The code is inlined, and the compiler is told that it changes every register: a wait then saves only what the thread
// needs after it, and the jump is predicted at each wait separately.
#pragma once

#include "types.h"

/// Where code that does not run will go on.
struct mr_place {
  void* stack = nullptr;
  void* frame = nullptr;
  void* base = nullptr;
  void* code = nullptr;
};

#if defined(__x86_64__)
#if defined(__AVX512F__)
#define MR_WIDE_REGISTERS                                                                                       \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
      "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define MR_WIDE_REGISTERS
#endif
#if defined(__APX_F__)
#define MR_MORE_REGISTERS \
  , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define MR_MORE_REGISTERS
#endif
/// Leaves the running code at `from`, and goes on at `to`. Compilers reserve %rbp and %rbx for some functions.
MR_INLINE void mr_switch(mr_place* from, const mr_place* to) {
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "movq %%rbx, 16(%0)\n\t"
      "movq %%rax, 24(%0)\n\t"
      "movq (%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "movq 16(%1), %%rbx\n\t"
      "jmpq *24(%1)\n"
      "1:"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",
        "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory",
        "cc" MR_WIDE_REGISTERS MR_MORE_REGISTERS);
}
#elif defined(__aarch64__)
#if defined(__ARM_FEATURE_SVE)
#define MR_WIDE_REGISTERS \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#else
#define MR_WIDE_REGISTERS
#endif
/// Leaves the running code at `from`, and goes on at `to`. Compilers reserve x19 and
/// x29 for some functions.
MR_INLINE void mr_switch(mr_place* from, const mr_place* to) {
  // The compiler computes both arguments before it assigns x0 and x1: a call that computes one would change them.
  asm volatile("" : "+r"(from), "+r"(to));
  register mr_place* left asm("x0") = from;
  register const mr_place* next asm("x1") = to;
  asm volatile(
      "adr x3, 1f\n\t"
      "mov x2, sp\n\t"
      "stp x2, x29, [x0]\n\t"
      "stp x19, x3, [x0, 16]\n\t"
      "ldp x2, x29, [x1]\n\t"
      "ldp x19, x3, [x1, 16]\n\t"
      "mov sp, x2\n\t"
      "br x3\n"
      "1:\n\t"
      "hint 36"  // Where branch targets are checked, this is one.
      : "+r"(left), "+r"(next)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
        "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc" MR_WIDE_REGISTERS);
}
#else
#error "Kernels whose threads wait need a switch of stacks for this processor."
#endif
#undef MR_WIDE_REGISTERS
#undef MR_MORE_REGISTERS

/// The place at which a new stack begins: `code` takes nothing and does not return. `top` is aligned to 16 bytes.
static inline mr_place mr_beginning(char* top, void (*code)()) {
#if defined(__x86_64__)
  // As behind a call, and with no caller for debuggers.
  top -= 8;
  *reinterpret_cast<void**>(top) = nullptr;
#endif
  return {top, nullptr, nullptr, reinterpret_cast<void*>(code)};
}
