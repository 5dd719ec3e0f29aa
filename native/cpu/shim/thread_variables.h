// Where variables of thread storage duration lie: in memory that the device owns (native/cpu/kernel_memory.h), not in
// the host's heap, where the C library would put them. Compilers know that no argument points to such a variable, so a
// loop over shared memory vectorises.
//
// The image defines the function by which compilers find the variables of the calling thread: its stack tells which
// thread that is. The C library never allocates any. The shim's own variables come first; `__shared__` variables follow
// mr_shared_offset bytes later, so that an index outside of shared memory reaches no other memory.
#pragma once

#include "launch_abi.h"

#define MR_TEXT_OF(value) #value
#define MR_TEXT(value) MR_TEXT_OF(value)
#if defined(__x86_64__)
#define MR_FIND_VARIABLE                \
  "  movq %rsp, %rax\n"                 \
  "  andq .Lmr_place(%rip), %rax\n"     \
  "  addq .Lmr_place + 8(%rip), %rax\n" \
  "  addq 8(%rdi), %rax\n"
#elif defined(__aarch64__)
#define MR_FIND_VARIABLE             \
  "  adrp x2, .Lmr_place\n"          \
  "  add x2, x2, :lo12:.Lmr_place\n" \
  "  ldp x1, x2, [x2]\n"             \
  "  mov x3, sp\n"                   \
  "  and x1, x1, x3\n"               \
  "  ldr x0, [x0, 8]\n"              \
  "  add x1, x1, x2\n"               \
  "  add x0, x0, x1\n"
#else
#error "Images need a function that finds their variables on this processor."
#endif
// These zeros are the first of the zeroed variables: compilers write lines of `asm` before the code that they compile.
asm(R"(
  .pushsection .tbss,"awT",@nobits
  .zero )" MR_TEXT(MR_SHARED_OFFSET) R"(
  .popsection
  .pushsection .text
  .hidden __tls_get_addr
  .globl __tls_get_addr
  .type __tls_get_addr, @function
__tls_get_addr:
)" MR_FIND_VARIABLE R"(
  ret
  .size __tls_get_addr, . - __tls_get_addr
  .popsection
  .pushsection .mr_place,"aw",@progbits
  .globl mr_place
  .type mr_place, @object
  .size mr_place, 16
  .p2align 4
mr_place:
.Lmr_place:
  .quad 0, 0
  .popsection
)");
