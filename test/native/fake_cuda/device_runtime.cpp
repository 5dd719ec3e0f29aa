#include "device_runtime.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "cpu/shim/launch_abi.h"

namespace millrace::fake_cuda {
namespace {

constexpr unsigned kMaxThreads = 1024;

struct Child {
  MrEntry entry;
  MrLaunch shape;
  std::vector<std::vector<char>> values;
};

struct Launcher : MrLauncher {
  Launcher() : MrLauncher{&Launch, &MakeStream, {}} {}

  static unsigned long long MakeStream(MrLauncher* self) {
    return mr_first_own_stream + static_cast<Launcher*>(self)->streams++;
  }
  static void Launch(MrLauncher* self, const MrChild* child) { static_cast<Launcher*>(self)->Take(*child); }

  void Take(const MrChild& child) {
    if (child.block[0] * child.block[1] * child.block[2] - 1 >= kMaxThreads || child.grid[0] == 0) {
      refused.error = mr_invalid_configuration;
      for (int axis = 0; axis < 3; ++axis) {
        refused.block[axis] = child.from_block[axis];
        refused.thread[axis] = child.from_thread[axis];
      }
      return;
    }
    Child taken{child.entry,
                {.grid = {child.grid[0], child.grid[1], child.grid[2]},
                 .block = {child.block[0], child.block[1], child.block[2]},
                 .shared_bytes = static_cast<unsigned>(child.shared_bytes)},
                {}};
    for (unsigned i = 0; i < child.count; ++i) {
      const auto* from = static_cast<const char*>(child.params[i]);
      taken.values.emplace_back(from, from + child.sizes[i]);
    }
    (child.stream == mr_tail_stream ? tails : others).push_back(std::move(taken));
  }

  unsigned long long streams = 0;
  std::vector<Child> others;
  std::vector<Child> tails;
};

void RunChildren(std::vector<Child>& children, const testing::ImageMemory& image) {
  for (Child& child : children) {
    std::vector<void*> pointers;
    for (std::vector<char>& value : child.values) pointers.push_back(value.data());
    child.shape.params = pointers.data();
    RunLaunchTree(child.entry, child.shape, image);
  }
}

}  // namespace

void RunLaunchTree(MrEntry entry, const MrLaunch& shape, const testing::ImageMemory& image) {
  std::vector<char> shared(shape.shared_bytes + 64);
  Launcher launcher;
  MrLaunch launch = shape;
  launch.dynamic_shared = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(shared.data()) + 63) / 64 * 64);
  launch.launcher = &launcher;
  image.Call(entry, launch, 0, 1ull * shape.grid[0] * shape.grid[1] * shape.grid[2]);
  RunChildren(launcher.others, image);
  RunChildren(launcher.tails, image);
}

}  // namespace millrace::fake_cuda
