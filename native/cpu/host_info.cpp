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

// The lowest limit from a group up to the root of its hierarchy. Missing files are skipped: a container may see its own
// group as the root, so that its path names nothing.
uint64_t LowestLimit(const std::string& root, std::string group, const char* file) {
  uint64_t lowest = ReadLimit(root + '/' + file);
  while (group.size() > 1) {
    lowest = std::min(lowest, ReadLimit(root + group + '/' + file));
    group.resize(group.rfind('/'));
  }
  return lowest;
}

uint64_t ControlGroupBytes() {
  uint64_t lowest = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  // Each line: hierarchy ":" controllers ":" path. Version 2 names no controllers.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 == line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      lowest = std::min(lowest, LowestLimit("/sys/fs/cgroup", group, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      lowest = std::min(lowest, LowestLimit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return lowest;
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

uint64_t MemoryBytes() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(pages * page_bytes, ControlGroupBytes());
}

}  // namespace millrace::cpu
