// Counts the instructions that one thread of a program executes between marks, by running them one at a time with
// ptrace. It needs no performance counters, which virtual machines often lack, and no other program. Used by
// scripts/gate.mjs.
//
//   step_counter PROGRAM [ARGUMENT...]
//
// The program prints a thread's id and waits for a line of input. From then on, umask(0635) begins a region in that
// thread, and umask(0636) ends it. Prints a JSON array with the number of instructions of each region. Exit codes: 0; 1
// if the program fails; 3 if the machine does not allow ptrace.
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr unsigned long long kBegin = 0635;
constexpr unsigned long long kEnd = 0636;
/// No region is so long: the thread has missed its mark.
constexpr long kMost = 20'000'000;

[[noreturn]] void Stop(int code, const char* what) {
  std::fprintf(stderr, "%s: %s.\n", what, std::strerror(errno));
  std::exit(code);
}

class Tracer {
 public:
  explicit Tracer(pid_t thread) : thread_(thread) {
    if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0)
      Stop(3, "ptrace is not allowed");
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) Stop(3, "the thread cannot be stopped");
    Wait();
    // On one processor the kernel switches between the two without waking another processor for each instruction.
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(sched_getcpu(), &own);
    sched_setaffinity(0, sizeof(own), &own);
    sched_setaffinity(thread, sizeof(own), &own);
  }

  /// Runs until the thread enters umask with this mask. False once it has ended.
  bool RunTo(unsigned long long mask) {
    for (;;) {
      if (!Resume(PTRACE_SYSCALL) || !Wait()) return false;
      if (is_at_call_ && IsAt(mask)) return true;
    }
  }

  /// The instructions up to the call of umask that ends a region; -1 if there is none.
  long Count() {
    // Leaves the call that began the region.
    if (!Resume(PTRACE_SYSCALL) || !Wait()) return -1;
    for (long steps = 0; steps < kMost; ++steps) {
      if (IsAt(kEnd)) return steps;
      if (!Resume(PTRACE_SINGLESTEP) || !Wait()) return -1;
    }
    return -1;
  }

 private:
  bool Resume(__ptrace_request how) {
    const long passed = signal_;
    signal_ = 0;
    return ptrace(how, thread_, nullptr, passed) == 0;
  }

  /// False once the thread has ended. Signals that are not the tracer's are passed on with the next step.
  bool Wait() {
    int status = 0;
    if (waitpid(thread_, &status, __WALL) != thread_ || !WIFSTOPPED(status)) return false;
    const int stop = WSTOPSIG(status);
    is_at_call_ = stop == (SIGTRAP | 0x80);
    if (!is_at_call_ && stop != SIGTRAP && status >> 16 == 0) signal_ = stop;
    return true;
  }

  /// Before the call as a single step sees it, or at its entry: there the kernel of x64 keeps the number in orig_rax.
  bool IsAt(unsigned long long mask) {
    user_regs_struct registers{};
    iovec place{&registers, sizeof(registers)};
    if (ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &place) != 0) return false;
    const auto number = static_cast<unsigned long long>(SYS_umask);
#if defined(__x86_64__)
    return registers.rdi == mask && (registers.rax == number || registers.orig_rax == number);
#elif defined(__aarch64__)
    return registers.regs[0] == mask && registers.regs[8] == number;
#endif
  }

  pid_t thread_;
  bool is_at_call_ = false;
  long signal_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int out[2];
  int in[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) Stop(1, "pipe2");
  const pid_t child = fork();
  if (child < 0) Stop(1, "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // It is not traced yet while it warms up.
    dup2(out[1], STDOUT_FILENO);
    dup2(in[0], STDIN_FILENO);
    execvp(argv[1], argv + 1);
    Stop(1, argv[1]);
  }
  close(out[1]);
  close(in[0]);
  FILE* answers = fdopen(out[0], "r");
  int thread = 0;
  if (std::fscanf(answers, "%d", &thread) != 1) Stop(1, "the program printed no thread");
  Tracer tracer(thread);
  if (write(in[1], "\n", 1) != 1) Stop(1, "write");
  std::vector<long> counts;
  while (tracer.RunTo(kBegin)) {
    const long count = tracer.Count();
    if (count < 0) break;
    counts.push_back(count);
  }
  int status = 0;
  // The traced thread may be the first one, whose end was seen already.
  const bool has_failed = waitpid(child, &status, 0) == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::printf("[");
  for (size_t i = 0; i < counts.size(); ++i) std::printf("%s%ld", i == 0 ? "" : ", ", counts[i]);
  std::printf("]\n");
  return has_failed ? 1 : 0;
}
