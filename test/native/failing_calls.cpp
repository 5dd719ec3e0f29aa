// Loaded with LD_PRELOAD: calls of the C library by the addon, and by the C++ library for it, fail on request.
//
//   MILLRACE_FAILING_CALLS      "mmap:3:12": the third call of mmap fails with errno 12; "@file": the file's text, read
//   at each call
//   MILLRACE_FAILING_CALLS_LOG  a file for one line per call, "fails=12" if it was made to fail
//   MILLRACE_FAILING_CALLS_IN   folders (:): calls for files in them count, by Node too, which reads and writes the
//   library's; and each fork, by which Node starts compilers
//
// These are what a system refuses that has no memory, threads or descriptors left, or whose rules forbid it. Without
// memory for small objects, which `new` makes, a process ends.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kMostText = 256;
constexpr int kMostNames = 32;

/// Counts of a text that was read, by name. A changed text restarts them. Signal handlers call some of these functions,
/// so no lock is held.
struct Counts {
  std::array<char, kMostText> text{};
  std::array<std::atomic<int>, kMostNames> seen{};
};
Counts counts;
std::atomic_flag is_reading = ATOMIC_FLAG_INIT;

/// Of this call's own making: system calls that nothing here replaces.
size_t ReadText(char* into) {
  const char* const text = std::getenv("MILLRACE_FAILING_CALLS");
  if (text == nullptr) return 0;
  if (text[0] != '@') {
    std::strncpy(into, text, kMostText - 1);
    return std::strlen(into);
  }
  const long file = syscall(SYS_openat, AT_FDCWD, text + 1, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const long size = syscall(SYS_read, file, into, kMostText - 1);
  syscall(SYS_close, file);
  return size < 0 ? 0 : static_cast<size_t>(size);
}

bool IsOurs(void* caller) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  // It takes no lock: dladdr waits for the loader's, also in calls of a thread that holds a lock of another one's
  // signal handler.
  dl_find_object object{};
  if (_dl_find_object(caller, &object) != 0) return false;
  const char* const file = object.dlfo_link_map->l_name;
#else
  Dl_info found{};
  if (dladdr(caller, &found) == 0 || found.dli_fname == nullptr) return false;
  const char* const file = found.dli_fname;
#endif
  return std::strstr(file, "millrace") != nullptr || std::strstr(file, "libstdc++") != nullptr;
}

void Log(const char* name, int code) {
  const char* const path = std::getenv("MILLRACE_FAILING_CALLS_LOG");
  if (path == nullptr) return;
  char line[96];
  const int size = code == 0
                       ? std::snprintf(line, sizeof(line), "thread=%ld %s\n", syscall(SYS_gettid), name)
                       : std::snprintf(line, sizeof(line), "thread=%ld %s fails=%d\n", syscall(SYS_gettid), name, code);
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, line, size);
  syscall(SYS_close, file);
}

bool IsInside(const char* path) {
  const char* const folders = std::getenv("MILLRACE_FAILING_CALLS_IN");
  for (const char* at = folders; at != nullptr; at = std::strchr(at, ':')) {
    at += at[0] == ':' ? 1 : 0;
    const size_t length = std::strcspn(at, ":");
    if (length > 0 && std::strncmp(path, at, length) == 0) return true;
  }
  return false;
}

bool IsInside(int file) {
  char link[32];
  char path[kMostText]{};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  return syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1) > 0 && IsInside(path);
}

/// The errno with which this call must fail, or 0. `index` is the function's own.
int InjectedIf(bool is_ours, const char* name, int index) {
  const int kept = errno;
  int code = 0;
  if (is_ours) {
    char text[kMostText]{};
    ReadText(text);
    while (is_reading.test_and_set()) {
    }
    if (std::strcmp(text, counts.text.data()) != 0) {
      std::memcpy(counts.text.data(), text, kMostText);
      for (auto& each : counts.seen) each = 0;
    }
    const int n = ++counts.seen[static_cast<size_t>(index)];
    is_reading.clear();
    const size_t length = std::strlen(name);
    int call = 0;
    int wanted = 0;
    if (std::strncmp(text, name, length) == 0 && std::sscanf(text + length, ":%d:%d", &call, &wanted) == 2 && n == call)
      code = wanted;
    Log(name, code);
  }
  errno = kept;
  return code;
}

int Injected(const char* name, int index, void* caller) {
  return InjectedIf(IsOurs(caller), name, index);
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define MR_REFUSED(name, index, failed)                                                 \
  if (const int code = Injected(name, index, __builtin_return_address(0)); code != 0) { \
    errno = code;                                                                       \
    return failed;                                                                      \
  }

extern "C" {

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  MR_REFUSED("mmap", 0, MAP_FAILED)
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

void* mremap(void* address, size_t old_size, size_t new_size, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  MR_REFUSED("mremap", 1, MAP_FAILED)
  return reinterpret_cast<void*>(syscall(SYS_mremap, address, old_size, new_size, flags, to));
}

int mprotect(void* address, size_t length, int protection) noexcept {
  MR_REFUSED("mprotect", 2, -1)
  return static_cast<int>(syscall(SYS_mprotect, address, length, protection));
}

int memfd_create(const char* name, unsigned int flags) noexcept {
  MR_REFUSED("memfd_create", 3, -1)
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

int ftruncate(int file, off_t length) noexcept {
  MR_REFUSED("ftruncate", 4, -1)
  return static_cast<int>(syscall(SYS_ftruncate, file, length));
}

int madvise(void* address, size_t length, int advice) noexcept {
  MR_REFUSED("madvise", 5, -1)
  return static_cast<int>(syscall(SYS_madvise, address, length, advice));
}

int mlock(const void* address, size_t length) noexcept {
  MR_REFUSED("mlock", 6, -1)
  return static_cast<int>(syscall(SYS_mlock, address, length));
}

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
  MR_REFUSED("sigaction", 7, -1)
  return Next<int(int, const struct sigaction*, struct sigaction*)>("sigaction")(signal, action, old);
}

int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  MR_REFUSED("sigaltstack", 8, -1)
  return Next<int(const stack_t*, stack_t*)>("sigaltstack")(stack, old);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  if (const int code = Injected("pthread_create", 9, __builtin_return_address(0)); code != 0) return code;
  return Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(thread, attributes,
                                                                                                 run, argument);
}

void* dlopen(const char* path, int flags) noexcept {
  // The loader keeps the message of its last failure, so this one fails by a file that is not there.
  if (Injected("dlopen", 10, __builtin_return_address(0)) != 0) path = "/nonexistent/refused.so";
  return Next<void*(const char*, int)>("dlopen")(path, flags);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (const int code = InjectedIf(IsInside(path), "open", 11); code != 0) return errno = code, -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode));
}

ssize_t write(int file, const void* bytes, size_t size) {
  if (const int code = InjectedIf(IsInside(file), "write", 12); code != 0) return errno = code, -1;
  return Next<ssize_t(int, const void*, size_t)>("write")(file, bytes, size);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  if (const int code = InjectedIf(IsInside(file), "write", 12); code != 0) return errno = code, -1;
  return Next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(file, bytes, size, at);
}

int rename(const char* from, const char* to) noexcept {
  if (const int code = InjectedIf(IsInside(to), "rename", 13); code != 0) return errno = code, -1;
  return Next<int(const char*, const char*)>("rename")(from, to);
}

pid_t fork() noexcept {
  const bool has_folder = std::getenv("MILLRACE_FAILING_CALLS_IN") != nullptr;
  if (const int code = InjectedIf(has_folder, "fork", 14); code != 0) return errno = code, -1;
  return Next<pid_t()>("fork")();
}

}  // extern "C"
