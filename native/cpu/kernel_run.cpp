#include "cpu/kernel_run.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>

#include "cpu/division_traps.h"
#include "cpu/kernel_memory.h"

namespace millrace::cpu {

/// The signal handler's data about a thread that runs kernels. Created at its first kernel, destroyed with the thread.
class KernelThread {
 public:
  KernelThread();
  ~KernelThread();
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;

  /// Null if the system refuses the handler or a signal stack; the next call tries again.
  static KernelThread* Here();
  /// Null on threads that run no kernels. Safe in a signal handler.
  static KernelThread* Find() { return static_cast<KernelThread*>(pthread_getspecific(key)); }
  static void OnSignal(int signal, siginfo_t* info, void* context);

  KernelRun* volatile run = nullptr;
  KernelMemory memory;

 private:
  [[nodiscard]] static bool Install();
  static void UnblockSignals();
  [[nodiscard]] bool HasSignalStack();
  static void PassOn(int signal, siginfo_t* info, void* context);
  void LeaveRun(KernelRun& left, int signal, const siginfo_t& info) const;

  static pthread_key_t key;
  static std::atomic<bool> is_installed;
  bool has_signal_stack_ = false;
  void* signal_stack_ = nullptr;  // Null: the thread already had one.
  size_t signal_stack_bytes_ = 0;
};

namespace {

// What a trap of the compilers (`__builtin_trap`) raises. On x64, SIGTRAP belongs to debuggers.
#if defined(__aarch64__)
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#else
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#endif
struct sigaction previous[std::size(kSignals)];

// Large enough for an earlier handler, which ours calls.
constexpr size_t kSignalStackBytes = size_t{64} << 10;

// A thread that waits in a loop for so long waits for one that never runs: the longest kernels of programs take
// seconds.
constexpr uint64_t kSpinLimitMs = 10'000;
constexpr const char* kSpinVariable = "MILLRACE_CPU_SPIN_MS";

uint64_t SpinLimitMs() {
  static const uint64_t limit = [] {
    const char* text = std::getenv(kSpinVariable);
    const uint64_t given = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    return given == 0 ? kSpinLimitMs : given;
  }();
  return limit;
}

}  // namespace

pthread_key_t KernelThread::key;
std::atomic<bool> KernelThread::is_installed{false};

KernelThread* KernelThread::Here() {
  if (!is_installed.load(std::memory_order_acquire) && !Install()) return nullptr;
  thread_local KernelThread thread;
  return thread.HasSignalStack() && thread.memory.Map() ? &thread : nullptr;
}

bool KernelThread::Install() {
  static std::mutex mutex;
  // What earlier attempts have done. Guarded by `mutex`.
  static bool has_key = false;
  static size_t handled = 0;
  std::lock_guard lock(mutex);
  has_key = has_key || pthread_key_create(&key, nullptr) == 0;
  if (!has_key) return false;
  for (; handled < std::size(kSignals); ++handled) {
    struct sigaction ours {};
    ours.sa_sigaction = &OnSignal;
    sigemptyset(&ours.sa_mask);
    // No deferral: the handler leaves by longjmp, after which the signal would stay blocked.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(kSignals[handled], nullptr, &previous[handled]) != 0) return false;
    if (sigaction(kSignals[handled], &ours, nullptr) != 0) return false;
  }
  is_installed.store(true, std::memory_order_release);
  return true;
}

// If an instruction raises a blocked signal, the kernel ends the process.
void KernelThread::UnblockSignals() {
  sigset_t raised;
  sigemptyset(&raised);
  for (const int signal : kSignals) sigaddset(&raised, signal);
  pthread_sigmask(SIG_UNBLOCK, &raised, nullptr);
}

KernelThread::KernelThread() {
  UnblockSignals();
  pthread_setspecific(key, this);
}

// After a stack overflow, a handler can only run on an alternate stack.
bool KernelThread::HasSignalStack() {
  if (has_signal_stack_) return true;
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0) return false;
  if ((present.ss_flags & SS_DISABLE) != 0) {
    const size_t bytes = std::max(kSignalStackBytes, static_cast<size_t>(std::max(0L, sysconf(_SC_MINSIGSTKSZ))) * 4);
    void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (made == MAP_FAILED) return false;
    stack_t stack{};
    stack.ss_sp = made;
    stack.ss_size = bytes;
    if (sigaltstack(&stack, nullptr) != 0) {
      munmap(made, bytes);
      return false;
    }
    signal_stack_ = made;
    signal_stack_bytes_ = bytes;
  }
  has_signal_stack_ = true;
  return true;
}

KernelThread::~KernelThread() {
  pthread_setspecific(key, nullptr);
  if (signal_stack_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(signal_stack_, signal_stack_bytes_);
}

// This and everything that it calls runs in signal handlers.
void KernelThread::OnSignal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // A positive code means that an instruction of this thread raised the signal, not kill() or another process.
  if (KernelThread* thread = Find(); thread != nullptr && info->si_code > 0) {
    KernelRun* run = thread->run;
    if (run != nullptr && !run->is_paused_) {
#if defined(__SANITIZE_THREAD__)
      // The sanitizer blocks every signal in handlers, whatever their flags are, and the handler may not return.
      UnblockSignals();
#endif
      if (signal != SIGFPE) thread->LeaveRun(*run, signal, *info);
      if (SkipDivision(*static_cast<ucontext_t*>(context))) {
        errno = error;
        return;
      }
    }
  }
  PassOn(signal, info, context);
  errno = error;
}

void KernelThread::LeaveRun(KernelRun& left, int signal, const siginfo_t& info) const {
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  if (signal == SIGILL || signal == SIGTRAP) left.Leave(KernelFault::kInstruction, address);
  if (info.si_code == SI_KERNEL) left.Leave(KernelFault::kNoAddress, address);
  if (memory.IsBelowStack(address)) left.Leave(KernelFault::kStack, kKernelStackBytes);
  if (memory.stacks().Contains(address)) left.Leave(KernelFault::kStack, memory.stacks().bytes());
  if (memory.Contains(address)) left.Leave(KernelFault::kVariables, 0);
  left.Leave(KernelFault::kAddress, address);
}

// Behaves as if this library had no handler.
void KernelThread::PassOn(int signal, siginfo_t* info, void* context) {
  const auto index = static_cast<size_t>(std::find(kSignals, std::end(kSignals), signal) - kSignals);
  const struct sigaction& before = previous[index];
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  const bool is_raised = info->si_code > 0;
  if (before.sa_handler == SIG_IGN && !is_raised) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  // The instruction runs again and ends the process; a signal that was sent does so too.
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  sigaction(signal, &none, nullptr);
  if (!is_raised) raise(signal);
}

KernelExit KernelRun::Call(MrEntry entry, const MrLaunch& launch, uint64_t first, uint64_t end) {
  KernelThread* const thread = KernelThread::Here();
  if (thread == nullptr) return {.fault = KernelFault::kNoHandler};
  if (variables_ != nullptr && !thread->memory.Prepare(*variables_)) return {.fault = KernelFault::kNoHandler};
  memory_ = &thread->memory;
  if (sigsetjmp(place_, 0) == 0) {
    thread->run = this;
    memory_->Call(entry, launch, first, end);
  } else {
    memory_->ForgetCalls();
  }
  thread->run = nullptr;
  return exit_;
}

void KernelRun::Leave(KernelFault fault, uint64_t detail, const MrShuffle& shuffle) {
  exit_ = {.fault = fault, .detail = detail, .shuffle = shuffle};
  is_paused_ = false;
  siglongjmp(place_, 1);
}

char* KernelRun::TakeStacks(void* run, unsigned count, unsigned long long bytes) {
  auto& self = *static_cast<KernelRun*>(run);
  self.is_paused_ = true;
  std::byte* const first = self.memory_->TakeStacks(count, bytes);
  if (first == nullptr) self.Leave(KernelFault::kMemory, count * bytes);
  self.is_paused_ = false;
  return reinterpret_cast<char*>(first);
}

void KernelRun::Spin(void* run, unsigned long long* since) {
  auto& self = *static_cast<KernelRun*>(run);
  self.is_paused_ = true;
  // The thread that it waits for may need this core.
  sched_yield();
  const auto now = static_cast<unsigned long long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
  if (*since == 0) *since = now;
  const uint64_t limit = SpinLimitMs();
  if (now - *since > limit * 1'000'000) self.Leave(KernelFault::kSpin, limit);
  self.is_paused_ = false;
}

void KernelRun::FindSpaces(void* run, MrSpaces* found) {
  const auto& self = *static_cast<const KernelRun*>(run);
  *found = {.stack = reinterpret_cast<const char*>(self.memory_->stack()), .stack_bytes = kKernelStackBytes};
  if (self.variables_ == nullptr) return;
  found->variables = reinterpret_cast<const char*>(self.memory_->SharedOf(*self.variables_));
  found->variable_bytes = self.variables_->end() - self.variables_->first();
}

bool KernelRun::IsOnStacks(void* run, const void* address) {
  return static_cast<KernelRun*>(run)->memory_->stacks().Contains(reinterpret_cast<uintptr_t>(address));
}

void KernelRun::FailShuffle(void* run, const MrShuffle* shuffle) {
  static_cast<KernelRun*>(run)->Leave(KernelFault::kShuffle, 0, *shuffle);
}

KernelPause::KernelPause() : run_(KernelThread::Find()->run) {
  if (run_ != nullptr) run_->is_paused_ = true;
}

KernelPause::~KernelPause() {
  if (run_ != nullptr) run_->is_paused_ = false;
}

}  // namespace millrace::cpu
