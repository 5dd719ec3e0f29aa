// For packaged addons alone: what glibc has only since later releases than 2.28. CMakeLists.txt says how the other
// symbols get their old versions.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

// libstdc++ tests it before it counts references without atomic instructions. This library has threads.
extern "C" {
char __libc_single_threaded = 0;
}

extern "C" pid_t gettid() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

// Functions of their own since 2.33. The kernel's structure is the C library's on x64 and arm64.
extern "C" int stat(const char* path, struct stat* facts) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, facts, 0));
}

extern "C" int fstat64(int file, struct stat64* facts) {
  return static_cast<int>(syscall(SYS_fstat, file, facts));
}

namespace {

constexpr int64_t kSecond = 1000000000;

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}

int64_t Now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return Nanoseconds(time);
}

}  // namespace

// Since 2.30, and the library's where it exists: a wait by the monotonic clock. Else the same span of the other clock,
// which ends early or late if someone sets that meanwhile; callers look at their own clock when it returns.
extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const Wait wait = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (wait != nullptr) return wait(condition, mutex, clock, until);
  const int64_t end = Nanoseconds(*until) - Now(clock) + Now(CLOCK_REALTIME);
  const timespec on_other = {static_cast<time_t>(end / kSecond), static_cast<long>(end % kSecond)};
  return pthread_cond_timedwait(condition, mutex, &on_other);
}
