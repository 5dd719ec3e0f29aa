#include "addon/child_processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "hal/thread.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::microseconds(500);
/// After this time the other processes of a group are no longer waited for: nobody reaps them where process 1 does not.
constexpr auto kLongestWait = std::chrono::seconds(10);

/// False when Node has already waited for the child: another process may then have its pid.
bool IsOurChild(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Processes that were killed and have not all ended.
struct Killed {
  std::set<pid_t> unreaped;  // Children of this process.
  std::set<pid_t> groups;    // Their groups. The other members are not children of this process.

  bool HaveEnded() {
    std::erase_if(unreaped, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    std::erase_if(groups, [this](pid_t pid) { return !unreaped.contains(pid) && kill(-pid, 0) != 0; });
    return groups.empty();
  }

  bool AwaitUntil(Clock::time_point deadline) {
    while (!HaveEnded()) {
      if (Clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }
};

void Remove(const std::set<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }
}

}  // namespace

std::set<pid_t> LeadersStartedByThisThread() {
  std::set<pid_t> leaders;
  std::ifstream children("/proc/thread-self/children");
  for (pid_t pid; children >> pid;) {
    if (getpgid(pid) == pid) leaders.insert(pid);
  }
  return leaders;
}

void EndChildren(std::set<pid_t> leaders, std::set<std::string> folders, std::chrono::milliseconds deadline) {
  std::erase_if(leaders, [](pid_t pid) { return !IsOurChild(pid); });
  for (const pid_t pid : leaders) kill(-pid, SIGKILL);
  Killed killed{leaders, leaders};
  const bool have_ended = killed.AwaitUntil(Clock::now() + deadline);
  // If the whole process ends now, the thread below removes nothing.
  Remove(folders);
  if (have_ended) return;
  Thread reaper;
  const Status started = reaper.Start("mr-reaper", [killed, folders = std::move(folders)]() mutable {
    killed.AwaitUntil(Clock::now() + kLongestWait);
    for (const pid_t pid : killed.unreaped) waitpid(pid, nullptr, 0);
    // A compiler may have written to them until it ended.
    Remove(folders);
  });
  // Without a thread the zombies stay until the process ends.
  if (started.ok()) reaper.Detach();
}

}  // namespace millrace
