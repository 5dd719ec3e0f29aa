#include "cpu/host_info.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

namespace millrace::cpu {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// A limit file holds a number, or a word for no limit.
uint64_t ReadLimit(const std::string& path) {
  std::ifstream file(path);
  uint64_t limit = 0;
  return file >> limit ? limit : kNoLimit;
}

// The number behind this word at the start of a line; 0 if there is none.
uint64_t ReadNumber(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  uint64_t number = 0;
  for (std::string key; file >> key; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if (key == word && file >> number) return number;
  }
  return 0;
}

/// The files of a version of control groups.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cached;  // The word of memory.stat for file pages that the system drops before it refuses memory.
};
constexpr GroupFiles kFirstVersion{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kSecondVersion{"memory.max", "memory.current", "inactive_file"};

/// Lowers the limits to those of a group.
void Lower(HostMemory& memory, const std::string& folder, const GroupFiles& files) {
  const uint64_t limit = ReadLimit(folder + files.limit);
  if (limit == kNoLimit) return;
  const uint64_t usage = ReadLimit(folder + files.usage);
  const uint64_t held =
      usage == kNoLimit ? 0 : usage - std::min(usage, ReadNumber(folder + "memory.stat", files.cached));
  memory.total = std::min(memory.total, limit);
  memory.available = std::min(memory.available, limit - std::min(limit, held));
}

// From a group up to the root of its hierarchy. Missing files are skipped: a container may see its own group as the
// root, so that its path names nothing.
void LowerToGroups(HostMemory& memory, const std::string& root, std::string group, const GroupFiles& files) {
  Lower(memory, root + '/', files);
  while (group.size() > 1) {
    Lower(memory, root + group + '/', files);
    group.resize(group.rfind('/'));
  }
}

void LowerToControlGroups(HostMemory& memory) {
  std::ifstream groups("/proc/self/cgroup");
  // Each line: hierarchy ":" controllers ":" path. Version 2 names no controllers.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 == line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      LowerToGroups(memory, "/sys/fs/cgroup", group, kSecondVersion);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      LowerToGroups(memory, "/sys/fs/cgroup/memory", group, kFirstVersion);
    }
  }
}

}  // namespace

std::string ModelName() {
  constexpr std::string_view kKey = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "CPU";
}

HostMemory MemoryOfHost() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  HostMemory memory{.total = pages * page_bytes, .available = pages * page_bytes};
  if (const uint64_t kib = ReadNumber("/proc/meminfo", "MemAvailable:"); kib > 0) {
    memory.available = std::min(memory.available, kib << 10);
  }
  LowerToControlGroups(memory);
  return memory;
}

}  // namespace millrace::cpu
