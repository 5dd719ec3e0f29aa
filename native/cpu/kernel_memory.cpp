#include "cpu/kernel_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "cpu/address_space.h"
#include "cpu/shim/launch_abi.h"

extern "C" void mr_call_on_stack(MrEntry entry, const MrLaunch* launch, unsigned long long first,
                                 unsigned long long end, void* stack_end);
// Where the caller's stack is stands at the start of the variables (kOwn), which the kernel's stack tells. A kernel
// that is stopped goes on behind the call with any values in the registers.
#if defined(__x86_64__)
#define MR_CALL_ON_STACK                                                                       \
  "  pushq %rbx\n  pushq %rbp\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"       \
  "  movq %rsp, %rax\n  movq %r8, %rsp\n  movq $-0x200000000, %r9\n  andq %r8, %r9\n"          \
  "  movq %rax, 0x40000000(%r9)\n"                                                             \
  "  movq %rdi, %rax\n  movq %rsi, %rdi\n  movq %rdx, %rsi\n  movq %rcx, %rdx\n  call *%rax\n" \
  "  movq $-0x200000000, %rax\n  andq %rsp, %rax\n  movq 0x40000000(%rax), %rsp\n"             \
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbp\n  popq %rbx\n  ret\n"
#elif defined(__aarch64__)
#define MR_CALL_ON_STACK                                                                     \
  "  stp x29, x30, [sp, -160]!\n  stp x19, x20, [sp, 16]\n  stp x21, x22, [sp, 32]\n"        \
  "  stp x23, x24, [sp, 48]\n  stp x25, x26, [sp, 64]\n  stp x27, x28, [sp, 80]\n"           \
  "  stp d8, d9, [sp, 96]\n  stp d10, d11, [sp, 112]\n  stp d12, d13, [sp, 128]\n"           \
  "  stp d14, d15, [sp, 144]\n"                                                              \
  "  mov x9, sp\n  mov sp, x4\n  and x10, x4, -0x200000000\n  mov x11, 0x40000000\n"         \
  "  str x9, [x10, x11]\n"                                                                   \
  "  mov x9, x0\n  mov x0, x1\n  mov x1, x2\n  mov x2, x3\n  blr x9\n"                       \
  "  mov x9, sp\n  and x10, x9, -0x200000000\n  mov x11, 0x40000000\n  ldr x9, [x10, x11]\n" \
  "  mov sp, x9\n"                                                                           \
  "  ldp d14, d15, [sp, 144]\n  ldp d12, d13, [sp, 128]\n  ldp d10, d11, [sp, 112]\n"        \
  "  ldp d8, d9, [sp, 96]\n  ldp x27, x28, [sp, 80]\n  ldp x25, x26, [sp, 64]\n"             \
  "  ldp x23, x24, [sp, 48]\n  ldp x21, x22, [sp, 32]\n  ldp x19, x20, [sp, 16]\n"           \
  "  ldp x29, x30, [sp], 160\n  ret\n"
#endif
asm(R"(
  .pushsection .text
  .hidden mr_call_on_stack
  .globl mr_call_on_stack
  .type mr_call_on_stack, @function
mr_call_on_stack:
)" MR_CALL_ON_STACK R"(
  .size mr_call_on_stack, . - mr_call_on_stack
  .popsection
)");

namespace millrace::cpu {
namespace {

// Parts of the address space of a thread, which costs nothing until it is used:
//   guard | the shim's variables | guard | shared variables | guard | stack | guard | stacks of a block's threads |
//   guard
constexpr uint64_t kGuard = MR_SHARED_OFFSET;
constexpr uint64_t kOwn = kOwnVariables;
constexpr uint64_t kStack = kOwn + MR_SHARED_OFFSET + kMostVariableBytes + kGuard;
constexpr uint64_t kStacks = kStack + kKernelStackBytes + kGuard;
constexpr uint64_t kMostStackBytes = 1 << 30;
constexpr uint64_t kAll = kStacks + kMostStackBytes + kGuard;
static_assert(2 * kMostVariableBytes <= MR_SHARED_OFFSET && kAll <= kKernelMemorySpan);
static_assert(kOwn == 0x40000000 && kKernelMemorySpan == 0x200000000);

// Where the system limits the address space.
constexpr uint64_t kSmallGuard = 1 << 20;
constexpr uint64_t kSmallPart = 16 << 20;
constexpr uint64_t kTries = 64;

// Larger than any frame that src/toolchain/compilers/stack-usage.ts accepts, so that no function can skip over it.
constexpr uint64_t kStackGuard = 8 << 20;
// Accessible memory grows by so much.
constexpr uint64_t kGrowth = 1 << 20;

struct Part {
  uint64_t first;
  uint64_t bytes;
};

std::byte* Reserve(std::byte* at, uint64_t bytes) {
  const int where = at == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const mapped = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | where, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

bool KernelMemory::Map() {
  if (stack_ != nullptr) return true;
  if (!MapWhole() && !MapParts()) return false;
  std::byte* const stack = own_ - kOwn + kStack;
  // The address to return to is in front of the first variables.
  if (Grow(own_, sizeof(void*), most_variables_, &own_bytes_) &&
      mprotect(stack, kKernelStackBytes, PROT_READ | PROT_WRITE) == 0) {
    stack_ = stack;
    return true;
  }
  Unmap();
  return false;
}

bool KernelMemory::MapWhole() {
  std::byte* const mapped = Reserve(nullptr, 2 * kKernelMemorySpan);
  if (mapped == nullptr) return false;
  const uint64_t before = RoundUp(At(mapped), kKernelMemorySpan) - At(mapped);
  if (before > 0) munmap(mapped, before);
  munmap(mapped + before + kAll, 2 * kKernelMemorySpan - before - kAll);
  reserved_.push_back({mapped + before, kAll});
  own_ = mapped + before + kOwn;
  most_variables_ = kMostVariableBytes;
  reserved_for_stacks_ = kMostStackBytes;
  return true;
}

bool KernelMemory::MapParts() {
  most_variables_ = kSmallPart;
  std::byte* const near = Reserve(nullptr, kSmallGuard);
  if (near == nullptr) return false;
  munmap(near, kSmallGuard);
  std::byte* start = near - At(near) % kKernelMemorySpan;
  for (uint64_t n = 0; n < kTries; ++n) {
    start -= kKernelMemorySpan;
    if (MapPartsAt(start)) return true;
    Unmap();
  }
  return false;
}

bool KernelMemory::MapPartsAt(std::byte* start) {
  constexpr Part kParts[] = {{kOwn - kSmallGuard, kSmallPart + 2 * kSmallGuard},
                             {kOwn + MR_SHARED_OFFSET - kSmallGuard, kSmallPart + 2 * kSmallGuard},
                             {kStack - kStackGuard, kStackGuard + kKernelStackBytes + kSmallGuard},
                             {kStacks - kSmallGuard, kSmallGuard}};
  for (const auto& [first, bytes] : kParts) {
    std::byte* const made = Reserve(start + first, bytes);
    if (made == nullptr) return false;
    reserved_.push_back({made, bytes});
  }
  own_ = start + kOwn;
  return true;
}

void KernelMemory::Unmap() {
  for (const auto& [start, bytes] : reserved_) munmap(start, bytes);
  reserved_.clear();
  own_bytes_ = 0;
  reserved_for_stacks_ = 0;
}

void KernelMemory::Call(MrEntry entry, const MrLaunch& launch, uint64_t first, uint64_t end) const {
  mr_call_on_stack(entry, &launch, first, end, stack_ + kKernelStackBytes);
}

void KernelMemory::ForgetCalls() const {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(stack_, kKernelStackBytes + kGuard + kMostStackBytes);
#endif
}

bool KernelMemory::Grow(std::byte* start, uint64_t bytes, uint64_t most, uint64_t* present) {
  if (bytes <= *present) return true;
  if (bytes > most) return false;
  const uint64_t wanted = std::min(most, RoundUp(bytes, kGrowth));
  if (mprotect(start + *present, wanted - *present, PROT_READ | PROT_WRITE) != 0) return false;
  *present = wanted;
  return true;
}

bool KernelMemory::Prepare(const ImageVariables& variables) {
  if (variables.number() < prepared_.size() && prepared_[variables.number()]) return true;
  const uint64_t first = variables.first();
  const uint64_t end = variables.end();
  if (!Grow(own_, end, most_variables_, &own_bytes_)) return false;
  if (!Grow(own_ + MR_SHARED_OFFSET, end, most_variables_, &shared_bytes_)) return false;
  // An image that was unloaded may have left values.
  if (first < used_) {
    const uint64_t old = std::min(end, used_) - first;
    std::memset(own_ + first, 0, old);
    std::memset(SharedOf(variables), 0, old);
  }
  used_ = std::max(used_, end);
  std::memcpy(own_ + first, variables.initial().data(), variables.initial().size());
  if (prepared_.size() <= variables.number()) prepared_.resize(variables.number() + 1);
  prepared_[variables.number()] = true;
  return true;
}

std::byte* KernelMemory::SharedOf(const ImageVariables& variables) const {
  return own_ + MR_SHARED_OFFSET + variables.first();
}

std::byte* KernelMemory::TakeStacks(uint32_t count, uint64_t bytes) {
  const uint64_t wanted = ThreadStacks::Rounded(count) * bytes;
  if (wanted > kMostStackBytes) return nullptr;
  std::byte* const start = own_ - kOwn + kStacks;
  if (wanted > reserved_for_stacks_) {
    // With a guard behind them, where the next ones will be.
    const uint64_t had = reserved_for_stacks_ == 0 ? 0 : reserved_for_stacks_ + kSmallGuard;
    std::byte* const made = Reserve(start + had, wanted + kSmallGuard - had);
    if (made == nullptr) return nullptr;
    reserved_.push_back({made, wanted + kSmallGuard - had});
    reserved_for_stacks_ = wanted;
  }
  return stacks_.Take(start, count, bytes);
}

bool KernelMemory::IsBelowStack(uintptr_t address) const {
  return At(stack_) - address - 1 < kStackGuard;
}

bool KernelMemory::Contains(uintptr_t address) const {
  return std::any_of(reserved_.begin(), reserved_.end(),
                     [&](const Reserved& one) { return address - At(one.start) < one.bytes; });
}

}  // namespace millrace::cpu
