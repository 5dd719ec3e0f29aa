#include "options.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::fake_cuda {

namespace {

long long Number(const char* name, long long fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || text[0] == '\0' ? fallback : std::strtoll(text, nullptr, 10);
}

std::string Text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

struct Failure {
  std::string function;
  long long call;
  cuda::CUresult code;
  long long seen;
  bool is_delay;  // The code is its milliseconds.
};

struct Failures {
  std::mutex mutex;
  std::vector<Failure> list;
  int file = -1;     // Of "@file".
  std::string text;  // What it held.

  void Follow(const std::string& path) {
    file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) return;
    std::fprintf(stderr, "fake_cuda: cannot read '%s'\n", path.c_str());
    std::abort();
  }
  /// A changed text restarts the counts.
  void ReadAgain() {
    if (file < 0) return;
    std::array<char, 256> buffer;
    const ssize_t size = pread(file, buffer.data(), buffer.size(), 0);
    const std::string now(buffer.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (now == text) return;
    text = now;
    Parse(text);
  }

  void Parse(const std::string& specification) {
    list.clear();
    for (const std::string& entry : Split(specification, ',')) {
      const std::vector<std::string> parts = Split(entry, ':');
      if (parts.size() != 3) {
        std::fprintf(stderr, "fake_cuda: '%s' is not function:call:code\n", entry.c_str());
        std::abort();
      }
      const auto code = static_cast<cuda::CUresult>(std::strtol(parts[2].c_str(), nullptr, 10));
      list.push_back({parts[0], std::strtoll(parts[1].c_str(), nullptr, 10), code, 0, parts[2].ends_with("ms")});
    }
  }
};

Failures& GetFailures() {
  static Failures* failures = [] {
    auto* made = new Failures();
    const std::string text = Text("MILLRACE_FAKE_CUDA_FAIL");
    text.starts_with('@') ? made->Follow(text.substr(1)) : made->Parse(text);
    return made;
  }();
  return *failures;
}

}  // namespace

const Options& GetOptions() {
  static const Options* options = new Options{
      static_cast<int>(Number("MILLRACE_FAKE_CUDA_DEVICES", 2)),
      static_cast<int>(Number("MILLRACE_FAKE_CUDA_VERSION", 13000)),
      static_cast<uint64_t>(Number("MILLRACE_FAKE_CUDA_MEMORY", 1ll << 30)),
      static_cast<int>(Number("MILLRACE_FAKE_CUDA_DELAY_US", 0)),
      Text("MILLRACE_FAKE_CUDA_MISSING"),
      Number("MILLRACE_FAKE_CUDA_PEERS", 1) != 0,
      Number("MILLRACE_FAKE_CUDA_COOPERATION", 1) != 0,
  };
  return *options;
}

bool IsMissing(const char* function) {
  for (const std::string& name : Split(GetOptions().missing, ',')) {
    if (name == function) return true;
  }
  return false;
}

cuda::CUresult Injected(const char* function) {
  Failures& failures = GetFailures();
  std::unique_lock lock(failures.mutex);
  cuda::CUresult code = cuda::CUDA_SUCCESS;
  std::chrono::milliseconds delay{0};
  failures.ReadAgain();
  for (Failure& failure : failures.list) {
    const bool is_any = failure.function == "*" && std::strncmp(function, "cu", 2) == 0;
    if (!is_any && failure.function != function) continue;
    ++failure.seen;
    if (failure.call != 0 && failure.call != failure.seen) continue;
    if (failure.is_delay) {
      delay = std::chrono::milliseconds(failure.code);
    } else {
      code = failure.code;
    }
  }
  lock.unlock();
  if (delay.count() > 0) {
    Log(function, "takes=" + std::to_string(delay.count()));
    std::this_thread::sleep_for(delay);
  }
  return code;
}

void SetFailures(const char* specification) {
  const std::lock_guard lock(GetFailures().mutex);
  GetFailures().Parse(specification);
}

namespace {

struct BrokenPeers {
  std::mutex mutex;
  std::string which;
};

BrokenPeers& GetBrokenPeers() {
  static auto* broken = new BrokenPeers{{}, Text("MILLRACE_FAKE_CUDA_BROKEN_PEERS")};
  return *broken;
}

}  // namespace

bool ArePeersBroken(bool has_access) {
  BrokenPeers& broken = GetBrokenPeers();
  const std::lock_guard lock(broken.mutex);
  return broken.which == "always" || (broken.which == "access" && has_access);
}

void SetBrokenPeers(const std::string& which) {
  BrokenPeers& broken = GetBrokenPeers();
  const std::lock_guard lock(broken.mutex);
  broken.which = which;
}

void Log(const char* function, const std::string& detail) {
  static std::FILE* file = [] {
    const std::string path = Text("MILLRACE_FAKE_CUDA_LOG");
    return path.empty() ? nullptr : std::fopen(path.c_str(), "a");
  }();
  if (file == nullptr) return;
  static std::mutex mutex;
  static unsigned long long sequence = 0;
  const std::lock_guard lock(mutex);
  std::fprintf(file, "%llu thread=%ld %s%s%s\n", ++sequence, syscall(SYS_gettid), function, detail.empty() ? "" : " ",
               detail.c_str());
  std::fflush(file);
}

namespace {
std::mutex said_mutex;
std::string said;
}  // namespace

void Say(const char* function, cuda::CUresult code) {
  std::string lines;
  const std::string start = "[12:00:00.000][" + std::to_string(pthread_self()) + "][CUDA][E] ";
  for (const std::string& line : Split(Text("MILLRACE_FAKE_CUDA_SAYS"), '\n')) lines += start + line + '\n';
  lines += start + "Returning " + std::to_string(code) + " (CUDA_ERROR) from " + function + '\n';
  const std::lock_guard lock(said_mutex);
  said += lines;
  if (said.size() > 20'000) said.erase(0, said.find('\n', said.size() - 20'000) + 1);
}

std::string Said() {
  const std::lock_guard lock(said_mutex);
  return said;
}

}  // namespace millrace::fake_cuda
