#include "device_runtime.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "cpu/launcher.h"

namespace millrace::fake_cuda {
namespace {

constexpr unsigned kMaxThreads = 1024;

struct Child {
  Entry entry;
  CpuLaunch shape;
  std::vector<std::vector<char>> values;
};

struct Launcher : cpu::CpuLauncher {
  Launcher() : CpuLauncher{&Launch, &MakeStream, {}} {}

  static unsigned long long MakeStream(CpuLauncher* self) {
    return cpu::kFirstOwnStream + static_cast<Launcher*>(self)->streams++;
  }
  static void Launch(CpuLauncher* self, const cpu::CpuChild* child) { static_cast<Launcher*>(self)->Take(*child); }

  void Take(const cpu::CpuChild& child) {
    if (child.block[0] * child.block[1] * child.block[2] - 1 >= kMaxThreads || child.grid[0] == 0) {
      refused.error = cpu::kInvalidConfiguration;
      for (int axis = 0; axis < 3; ++axis) {
        refused.block[axis] = child.from_block[axis];
        refused.thread[axis] = child.from_thread[axis];
      }
      return;
    }
    Child taken{reinterpret_cast<Entry>(child.entry),
                {.params = nullptr,
                 .grid = {child.grid[0], child.grid[1], child.grid[2]},
                 .block = {child.block[0], child.block[1], child.block[2]},
                 .shared_bytes = static_cast<unsigned>(child.shared_bytes),
                 .dynamic_shared = nullptr,
                 .wait_for_grid = nullptr,
                 .grid_barrier = nullptr,
                 .launcher = nullptr},
                {}};
    for (unsigned i = 0; i < child.count; ++i) {
      const auto* from = static_cast<const char*>(child.params[i]);
      taken.values.emplace_back(from, from + child.sizes[i]);
    }
    (child.stream == cpu::kTailStream ? tails : others).push_back(std::move(taken));
  }

  unsigned long long streams = 0;
  std::vector<Child> others;
  std::vector<Child> tails;
};

void RunChildren(std::vector<Child>& children) {
  for (Child& child : children) {
    std::vector<void*> pointers;
    for (std::vector<char>& value : child.values) pointers.push_back(value.data());
    child.shape.params = pointers.data();
    RunLaunchTree(child.entry, child.shape);
  }
}

}  // namespace

void RunLaunchTree(Entry entry, const CpuLaunch& shape) {
  std::vector<char> shared(shape.shared_bytes + 64);
  Launcher launcher;
  KernelMemory memory;
  CpuLaunch launch = shape;
  launch.run = &memory;
  launch.dynamic_shared = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(shared.data()) + 63) / 64 * 64);
  launch.launcher = static_cast<cpu::CpuLauncher*>(&launcher);
  entry(&launch, 0, 1ull * shape.grid[0] * shape.grid[1] * shape.grid[2]);
  RunChildren(launcher.others);
  RunChildren(launcher.tails);
}

}  // namespace millrace::fake_cuda
