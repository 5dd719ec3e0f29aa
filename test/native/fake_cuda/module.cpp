// The fake driver's modules and launches.
//
// An image is an ELF file, a shared object in the CPU device's format, which is loaded through a memory file; or PTX,
// which cannot run here: the library's own PTX kernels are known by name (device_code.h).
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../image_memory.h"
#include "device_code.h"
#include "device_runtime.h"
#include "entry.h"
#include "options.h"

namespace millrace::fake_cuda {

namespace {

/// Dynamic shared memory per block: the default limit, and the limit with opt-in.
constexpr int kDefaultShared = 48 << 10;
constexpr int kMostShared = 227 << 10;

struct Function {
  MrEntry entry = nullptr;
  const unsigned* params = nullptr;  // Their number, then the size of each.
  int max_threads = 1024;
  int own_shared = 0;  // Static.
  int registers = 32;  // Of a thread.
  int allowed_shared = kDefaultShared;
  std::weak_ptr<struct Module> module;
};

/// A row of an image's variable table, which ends with a null name.
struct Variable {
  const char* name;
  void* address;
  unsigned long long bytes;
  unsigned is_const;
};

/// Converts `_ZN1a1bE` to `a::b`.
std::string NameOf(std::string symbol) {
  if (!symbol.starts_with("_ZN")) return symbol;
  std::string name;
  for (size_t at = 3; at < symbol.size() && symbol[at] != 'E';) {
    size_t digits = 0;
    const size_t length = std::stoul(symbol.substr(at), &digits);
    if (!name.empty()) name += "::";
    name += symbol.substr(at + digits, length);
    at += digits + length;
  }
  return name;
}

/// Launches hold their module, so unloading it never removes running code.
struct Module {
  int file = -1;            // Stays open: the name that the loader knows the library by is its descriptor's.
  void* library = nullptr;  // Null for PTX.
  testing::ImageMemory memory;
  std::string ptx;
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::vector<uintptr_t> variables;  // Those that were asked for. Guarded by World::mutex.

  ~Module() {
    memory = testing::ImageMemory();
    if (library != nullptr) dlclose(library);
    if (file >= 0) close(file);
  }
};

// Guarded by World::mutex. Never destroyed: streams still run while the process exits.
auto& modules = *new std::map<Module*, std::shared_ptr<Module>>;

/// The end of an ELF file, whose size the loader does not receive: after its last section header.
size_t ElfBytes(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  return header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
}

CUresult LoadElf(Module& module, const void* image) {
  module.file = memfd_create("fake_cuda_module", MFD_CLOEXEC);
  const size_t bytes = ElfBytes(image);
  for (size_t written = 0; written < bytes;) {
    const ssize_t count = write(module.file, static_cast<const char*>(image) + written, bytes - written);
    if (count <= 0) return cuda::CUDA_ERROR_INVALID_IMAGE;
    written += static_cast<size_t>(count);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module.file);
  module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module.library == nullptr) std::fprintf(stderr, "fake_cuda: %s\n", dlerror());
  module.memory = testing::ImageMemory(module.library);
  return module.library == nullptr ? cuda::CUDA_ERROR_INVALID_IMAGE : cuda::CUDA_SUCCESS;
}

bool IsAllowed(const unsigned grid[3], const unsigned block[3]) {
  constexpr unsigned kGrid[] = {0x7fffffff, 65535, 65535};
  constexpr unsigned kBlock[] = {1024, 1024, 64};
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0 || grid[axis] > kGrid[axis] || block[axis] == 0 || block[axis] > kBlock[axis]) return false;
  }
  return block[0] * block[1] * block[2] <= 1024;
}

/// Resident blocks per multiprocessor of compute capability 9.0.
int BlocksAtOnce(const Function& function, int threads, size_t shared_bytes) {
  constexpr int kThreads = 2048;
  constexpr int kBlocks = 32;
  constexpr int kRegisters = 64 << 10;
  constexpr size_t kShared = 228 << 10;
  constexpr size_t kSharedOfSystem = 1 << 10;  // A block.
  if (static_cast<int>(shared_bytes) > function.allowed_shared) return 0;
  const size_t shared = kSharedOfSystem + static_cast<size_t>(function.own_shared) + shared_bytes;
  return std::min(
      {kBlocks, kThreads / threads, kRegisters / (function.registers * threads), static_cast<int>(kShared / shared)});
}

/// Dynamic shared memory per block.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes + 64) {}
  [[nodiscard]] char* address() {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(bytes_.data()) + 63) / 64 * 64);
  }

 private:
  std::vector<char> bytes_;
};

/// An accepted launch: a copy of all its data, like the driver's.
struct Launch {
  std::shared_ptr<Module> module;
  MrEntry entry;
  MrLaunch shape;
  std::vector<std::vector<char>> values;
  bool is_cooperative;

  [[nodiscard]] unsigned block_count() const { return shape.grid[0] * shape.grid[1] * shape.grid[2]; }

  void Run(Device& device) {
    if (const CUresult code = Injected("kernel"); code != cuda::CUDA_SUCCESS) {
      Lose(device, code);
      return;
    }
    std::vector<void*> pointers;
    for (std::vector<char>& value : values) pointers.push_back(value.data());
    shape.params = pointers.data();
    if (is_cooperative) return RunCooperative();
    RunLaunchTree(entry, shape, module->memory);
  }

 private:
  /// A thread for each block.
  void RunCooperative() const {
    std::barrier<> barrier(block_count());
    std::vector<std::thread> blocks;
    for (unsigned block = 0; block < block_count(); ++block) {
      blocks.emplace_back([this, block, &barrier] {
        SharedMemory shared(shape.shared_bytes);
        MrLaunch launch = shape;
        launch.dynamic_shared = shared.address();
        launch.grid_barrier = &barrier;
        launch.wait_for_grid = [](void* grid) { static_cast<std::barrier<>*>(grid)->arrive_and_wait(); };
        module->memory.Call(entry, launch, block, block + 1);
        barrier.arrive_and_drop();
      });
    }
    for (std::thread& block : blocks) block.join();
  }
};

/// Null if the device cannot run it.
std::shared_ptr<Launch> Accept(const Function& function, const std::array<unsigned, 3>& grid,
                               const std::array<unsigned, 3>& block, unsigned shared_bytes, void** params) {
  auto launch = std::make_shared<Launch>(Launch{
      function.module.lock(),
      function.entry,
      {.grid = {grid[0], grid[1], grid[2]}, .block = {block[0], block[1], block[2]}, .shared_bytes = shared_bytes},
      {},
      false});
  if (!IsAllowed(launch->shape.grid, launch->shape.block) ||
      static_cast<int>(block[0] * block[1] * block[2]) > function.max_threads ||
      static_cast<int>(shared_bytes) > function.allowed_shared) {
    return nullptr;
  }
  for (unsigned i = 0; i < function.params[0]; ++i) {
    const auto* value = static_cast<const char*>(params[i]);
    launch->values.emplace_back(value, value + function.params[1 + i]);
  }
  return launch;
}

}  // namespace

std::function<void(bool)> AcceptNode(const cuda::CUDA_KERNEL_NODE_PARAMS& params) {
  const auto launch =
      Accept(*reinterpret_cast<Function*>(params.func), {params.gridDimX, params.gridDimY, params.gridDimZ},
             {params.blockDimX, params.blockDimY, params.blockDimZ}, params.sharedMemBytes, params.kernelParams);
  if (launch == nullptr) return {};
  return [launch, device = FromHandle(params.ctx)](bool is_cooperative) {
    launch->is_cooperative = is_cooperative;
    launch->Run(*device);
  };
}

}  // namespace millrace::fake_cuda

namespace millrace::cuda {

using namespace fake_cuda;  // NOLINT: these are its entry points

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  MR_ENTER("cuModuleLoadData");
  MR_CURRENT(device);
  auto made = std::make_shared<Module>();
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    if (const CUresult code = LoadElf(*made, image); code != CUDA_SUCCESS) return code;
  } else {
    made->ptx = static_cast<const char*>(image);
    if (made->ptx.find(".entry ") == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  }
  const std::lock_guard lock(GetWorld().mutex);
  *module = reinterpret_cast<CUmodule>(made.get());
  modules[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  MR_ENTER("cuModuleUnload");
  MR_CURRENT(device);
  std::shared_ptr<Module> last;  // Closed after the lock is gone.
  const std::lock_guard lock(GetWorld().mutex);
  const auto found = modules.find(reinterpret_cast<Module*>(module));
  if (found == modules.end()) return CUDA_ERROR_INVALID_HANDLE;
  last = std::move(found->second);
  modules.erase(found);
  for (const uintptr_t address : last->variables) GetWorld().ranges.erase(address);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  MR_ENTER("cuModuleGetFunction", name);
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  const std::shared_ptr<Module>& module = modules.at(reinterpret_cast<Module*>(handle));
  // As in CUDA, every call gives the same handle: the callers of earlier calls still use it.
  if (const auto found = module->functions.find(name); found != module->functions.end()) {
    *function = reinterpret_cast<CUfunction>(found->second.get());
    return CUDA_SUCCESS;
  }
  auto made = std::make_unique<Function>();
  made->module = module;
  if (module->library != nullptr) {
    made->entry = reinterpret_cast<MrEntry>(dlsym(module->library, (std::string("mr_entry_") + name).c_str()));
    made->params = static_cast<const unsigned*>(dlsym(module->library, (std::string("mr_params_") + name).c_str()));
  } else if (const BuiltIn* built_in = FindBuiltIn(name);
             built_in != nullptr && module->ptx.find(std::string(".entry ") + name + "(") != std::string::npos) {
    made->entry = built_in->entry;
    made->params = built_in->params;
  }
  if (made->entry == nullptr || made->params == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (module->library != nullptr) {
    // The first of images that the library's compiler made, the second of the tests' own.
    const auto number = [&](const char* prefix, int otherwise) {
      const auto* found = static_cast<const int*>(dlsym(module->library, (std::string(prefix) + name).c_str()));
      return found == nullptr ? otherwise : *found;
    };
    made->max_threads = number("mr_max_threads_", made->max_threads);
    made->own_shared = number("fake_own_shared_", 0);
    made->registers = number("fake_registers_", made->registers);
    made->allowed_shared -= made->own_shared;
  }
  *function = reinterpret_cast<CUfunction>(made.get());
  module->functions[name] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* symbol) {
  MR_ENTER("cuModuleGetGlobal", symbol);
  MR_CURRENT(device);
  const std::lock_guard lock(GetWorld().mutex);
  const std::shared_ptr<Module>& module = modules.at(reinterpret_cast<Module*>(handle));
  const auto* found =
      module->library == nullptr ? nullptr : static_cast<const Variable*>(dlsym(module->library, "mr_variables"));
  const std::string name = NameOf(symbol);
  while (found != nullptr && found->name != nullptr && name != found->name) ++found;
  if (found == nullptr || found->name == nullptr) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(found->address);
  *bytes = found->bytes;
  GetWorld().ranges[*address] = {found->bytes, Range::Kind::kVariable, device};
  module->variables.push_back(*address);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  MR_ENTER("cuFuncGetAttribute");
  const Function& function = *reinterpret_cast<Function*>(handle);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function.max_threads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = function.own_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.allowed_shared;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int value) {
  MR_ENTER("cuFuncSetAttribute", std::to_string(value));
  Function& changed = *reinterpret_cast<Function*>(function);
  if (value < 0 || value > kMostShared - changed.own_shared) return CUDA_ERROR_INVALID_VALUE;
  changed.allowed_shared = value;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads, size_t shared_bytes) {
  MR_ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor", std::to_string(threads));
  MR_CURRENT(device);
  *blocks = BlocksAtOnce(*reinterpret_cast<Function*>(handle), threads, shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void** params, void** extra) {
  MR_ENTER("cuLaunchKernel", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Function& function = *reinterpret_cast<Function*>(handle);
  std::shared_ptr<Launch> launch =
      Accept(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, params);
  if (launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PushWork(*queue, [launch, device] { launch->Run(*device); });
  return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction handle, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream, void** params) {
  MR_ENTER("cuLaunchCooperativeKernel", Name(stream));
  MR_CURRENT(device);
  MR_STREAM(queue, stream, device);
  if (!GetOptions().can_cooperate) return CUDA_ERROR_NOT_SUPPORTED;
  const Function& function = *reinterpret_cast<Function*>(handle);
  std::shared_ptr<Launch> launch =
      Accept(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, params);
  if (launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int most =
      kMultiprocessors * BlocksAtOnce(function, static_cast<int>(block_x * block_y * block_z), shared_bytes);
  if (launch->block_count() > static_cast<unsigned>(most)) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  launch->is_cooperative = true;
  PushWork(*queue, [launch, device] { launch->Run(*device); });
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace millrace::cuda
