// System calls that the system refuses: what needed them fails, and not the process.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>

#include "addon/shared_pages.h"
#include "cpu/kernel_fault.h"
#include "cpu_support.h"

namespace {

/// How many of the next calls are refused.
std::atomic<int> refused_handlers{0};
std::atomic<int> refused_stacks{0};
std::atomic<int> refused_protections{0};
/// Linux before 6.17: mremap unmaps a fixed target before it refuses private pages.
std::atomic<bool> unmaps_target{false};

bool Refuses(std::atomic<int>& calls) {
  if (calls.load() == 0) return false;
  calls.fetch_sub(1);
  errno = EPERM;
  return true;
}

}  // namespace

// These take the place of the C library's.
extern "C" {

int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (action != nullptr && Refuses(refused_handlers)) return -1;
  static const auto real =
      reinterpret_cast<int (*)(int, const struct sigaction*, struct sigaction*)>(dlsym(RTLD_NEXT, "sigaction"));
  return real(signal, action, before);
}

int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  if (stack != nullptr && Refuses(refused_stacks)) return -1;
  return static_cast<int>(syscall(SYS_sigaltstack, stack, before));
}

int mprotect(void* address, size_t bytes, int protection) noexcept {
  if (Refuses(refused_protections)) return -1;
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

void* mremap(void* source, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const target = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  if (unmaps_target.load() && target != nullptr) munmap(target, bytes);
  return reinterpret_cast<void*>(syscall(SYS_mremap, source, old_bytes, bytes, flags, target));
}
}

namespace millrace {
namespace {

constexpr size_t kPage = 4096;

std::span<std::byte> Pages(size_t count, int protection) {
  void* const made = mmap(nullptr, count * kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MR_CHECK(made != MAP_FAILED);
  return {static_cast<std::byte*>(made), count * kPage};
}

// The first test: the handler is installed once.
MR_TEST(ALaunchFailsIfTheSystemRefusesTheSignalHandlerOrStack) {
  for (std::atomic<int>* const refused : {&refused_handlers, &refused_stacks}) {
    // Its threads have run no kernel.
    auto device = OpenDevice(2);
    auto affine = LoadKernel(*device, "affine");
    Lane lane(*device);
    uint32_t word = 20;
    refused->store(1);
    lane.Launch(affine, {1, 1, 1}, &word, 1u, 1u);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(refused->load(), 0);
    const auto failures = lane.sink->failures();
    MR_REQUIRE(failures.size() == 1);
    MR_EXPECT(failures[0].code == StatusCode::kLaunchFailed);
    MR_EXPECT_EQ(failures[0].report.dimension, static_cast<uint32_t>(cpu::KernelFault::kNoHandler));
    MR_EXPECT_EQ(word, 20u);
    lane.Launch(affine, {1, 1, 1}, &word, 1u, 1u);
    MR_REQUIRE(lane.Drained());
    MR_EXPECT_EQ(word, 21u);
  }
}

MR_TEST(PrivatePagesThatCannotBeMappedTwiceLeaveUsablePages) {
  const std::span<std::byte> source = Pages(2, PROT_READ | PROT_WRITE);
  const std::span<std::byte> target = Pages(2, PROT_READ | PROT_WRITE);
  source[0] = std::byte{7};
  unmaps_target.store(true);
  MR_EXPECT(!MapAlso(target, source));
  unmaps_target.store(false);
  target[kPage] = std::byte{9};
  MR_EXPECT(target[0] == std::byte{0} && target[kPage] == std::byte{9} && source[0] == std::byte{7});
}

MR_TEST(PagesWhoseProtectionIsRefusedAreUsable) {
  const std::span<std::byte> script = Pages(4, PROT_NONE);
  MR_CHECK(mprotect(script.data(), kPage, PROT_READ | PROT_WRITE) == 0);
  script[3] = std::byte{5};
  refused_protections.store(1);
  const SharedPages pages = SharedPages::Map(script.data(), kPage, script.size());
  refused_protections.store(0);
  script[4] = std::byte{6};
  const std::span<std::byte> native = pages.Native(script.first(kPage));
  MR_EXPECT(native.data() != script.data());
  MR_EXPECT(native[3] == std::byte{5} && native[4] == std::byte{6});
  const std::span<std::byte> target = Pages(1, PROT_READ | PROT_WRITE);
  MR_EXPECT(MapAlso(target, script.first(kPage)));
  MR_EXPECT(target[4] == std::byte{6});
}

}  // namespace
}  // namespace millrace

MR_TEST_MAIN()
