// Runs kernels of images on bytes from files, one after the other: run_image LAUNCH [-- LAUNCH]... with LAUNCH: IMAGE
// ENTRY GX GY GZ BX BY BZ SHARED THREADS [v:HEX | m:FILE]... v: an argument's bytes; m: memory, whose address is the
// argument and which is written back. Each launch has a freshly loaded image. Several threads share the blocks, as the
// device's pool does; if THREADS is 0, all blocks run at once, each on a copy of the image, so that a block's shared
// memory may be the copy's static memory, and as a cooperative launch.
#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../../native/image_memory.h"
#include "launch_abi.h"

template <auto End>
struct Ended {
  void operator()(void* what) const { End(what); }
};
using Library = std::unique_ptr<void, Ended<dlclose>>;

struct Argument {
  std::string file;
  std::vector<char> bytes;
  std::unique_ptr<void, Ended<std::free>> memory;
  alignas(16) char value[64] = {};
};

// What copies of an image have in common.
extern "C" {
alignas(64) char mr_grids[65536];
}

static Library CopyOf(const std::string& image) {
  static unsigned copies = 0;
  const std::string path = image + '.' + std::to_string(copies++);
  std::ofstream(path, std::ios::binary) << std::ifstream(image, std::ios::binary).rdbuf();
  Library copy(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  std::remove(path.c_str());
  return copy;
}

static int Launch(int argc, char** argv) {
  if (argc < 10) return 2;
  const Library library(dlopen(argv[0], RTLD_NOW | RTLD_LOCAL));
  void* const image = library.get();
  if (!image) return std::fprintf(stderr, "%s\n", dlerror()), 3;
  const std::string name = argv[1];
  const auto entry = reinterpret_cast<MrEntry>(dlsym(image, ("mr_entry_" + name).c_str()));
  const auto* sizes = static_cast<const unsigned*>(dlsym(image, ("mr_params_" + name).c_str()));
  if (!entry || !sizes) return std::fprintf(stderr, "no kernel %s\n", argv[1]), 3;
  unsigned numbers[8];
  for (int i = 0; i < 8; ++i) numbers[i] = static_cast<unsigned>(std::atoi(argv[2 + i]));

  std::vector<Argument> arguments(argc - 10);
  if (arguments.size() != sizes[0]) return std::fprintf(stderr, "%u parameters\n", sizes[0]), 4;
  std::vector<void*> params;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string text = argv[10 + i];
    Argument& argument = arguments[i];
    std::size_t size = sizeof(void*);
    if (text[0] == 'm') {
      argument.file = text.substr(2);
      std::ifstream in(argument.file, std::ios::binary);
      argument.bytes.assign(std::istreambuf_iterator<char>(in), {});
      void* const address = std::aligned_alloc(64, (argument.bytes.size() + 127) / 64 * 64);
      argument.memory.reset(address);
      std::memcpy(address, argument.bytes.data(), argument.bytes.size());
      std::memcpy(argument.value, &address, sizeof(void*));
    } else {
      size = (text.size() - 2) / 2;
      for (std::size_t b = 0; b < size; ++b) {
        argument.value[b] = static_cast<char>(std::stoi(text.substr(2 + 2 * b, 2), nullptr, 16));
      }
    }
    if (size != sizes[1 + i]) return std::fprintf(stderr, "parameter %zu has %u bytes\n", i, sizes[1 + i]), 4;
    params.push_back(argument.value);
  }

  const unsigned long long blocks = 1ull * numbers[0] * numbers[1] * numbers[2];
  std::atomic<unsigned long long> next{0};
  const millrace::testing::ImageMemory memory(image);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < numbers[7]; ++t) {
    threads.emplace_back([&] {
      std::vector<char> shared(numbers[6] + 16);
      const MrLaunch launch{.params = params.data(),
                            .grid = {numbers[0], numbers[1], numbers[2]},
                            .block = {numbers[3], numbers[4], numbers[5]},
                            .shared_bytes = numbers[6],
                            .dynamic_shared = shared.data()};
      for (unsigned long long first; (first = next.fetch_add(3)) < blocks;) {
        memory.Call(entry, launch, first, first + 3 < blocks ? first + 3 : blocks);
      }
    });
  }
  std::barrier<> grid(static_cast<std::ptrdiff_t>(blocks));
  std::vector<Library> copies;
  for (unsigned block = 0; numbers[7] == 0 && block < blocks; ++block) {
    void* const copy = copies.emplace_back(CopyOf(argv[0])).get();
    if (!copy) return std::fprintf(stderr, "%s\n", dlerror()), 3;
    const auto own = reinterpret_cast<MrEntry>(dlsym(copy, ("mr_entry_" + name).c_str()));
    threads.emplace_back([&, memory_of_copy = millrace::testing::ImageMemory(copy), own, block] {
      std::vector<char> shared(numbers[6] + 16);
      const MrLaunch launch{
          .params = params.data(),
          .grid = {numbers[0], numbers[1], numbers[2]},
          .block = {numbers[3], numbers[4], numbers[5]},
          .shared_bytes = numbers[6],
          .dynamic_shared = shared.data(),
          .wait_for_grid = [](void* barrier) { static_cast<std::barrier<>*>(barrier)->arrive_and_wait(); },
          .grid_barrier = &grid};
      memory_of_copy.Call(own, launch, block, block + 1);
      grid.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Argument& argument : arguments) {
    if (argument.file.empty()) continue;
    std::ofstream(argument.file, std::ios::binary).write(static_cast<char*>(argument.memory.get()), argument.bytes.size());
  }
  return 0;
}

int main(int argc, char** argv) {
  for (int first = 1; first < argc; ++first) {
    int count = 0;
    while (first + count < argc && std::strcmp(argv[first + count], "--") != 0) ++count;
    if (const int failed = Launch(count, argv + first); failed != 0) return failed;
    first += count;
  }
}
