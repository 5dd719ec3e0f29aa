#include "runtime/nvtx.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace millrace::nvtx {

bool is_on = false;

namespace {

// ── NVTX's binary interface, version 3 ──

using Function = void (*)();
using Domain = void*;
using RangeId = uint64_t;

constexpr uint16_t kVersion = 3;
constexpr int32_t kTextMessage = 1;

/// nvtxEventAttributes_t.
struct Attributes {
  uint16_t version = kVersion;
  uint16_t size = sizeof(Attributes);
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 0;
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = kTextMessage;
  const char* message = nullptr;
};
static_assert(sizeof(Attributes) == 48);

enum Module : int32_t { kCore = 1, kCuda = 2, kOpenCl = 3, kCudaRuntime = 4, kCore2 = 5, kSync = 6 };
/// Functions of a module, by their numbers from 1 on. The tool may write all of them.
constexpr size_t kMostFunctions = 16;
constexpr std::array<uint32_t, 7> kSizes = {0, 16, 9, 15, 7, 16, 7};
/// Those of kCore2 that are called here.
enum : size_t { kRangeStart = 2, kRangeEnd = 3, kRangePush = 4, kRangePop = 5, kDomainCreate = 12 };

struct Table {
  std::array<Function, kMostFunctions> functions{};
  /// What the tool gets: a pointer to each function's place. Number 0 is no function, and a null follows the last one.
  std::array<Function*, kMostFunctions + 1> places{};
};

std::array<Table, kSizes.size()> tables;

int GetModuleTable(int32_t module, Function*** table, unsigned int* size) {
  if (module < kCore || module > kSync) return 0;
  if (table != nullptr) *table = tables[module].places.data();
  if (size != nullptr) *size = kSizes[module];
  return 1;
}

struct CallbacksTable {
  size_t size = sizeof(CallbacksTable);
  int (*get_module_table)(int32_t, Function***, unsigned int*) = GetModuleTable;
};

struct VersionTable {
  size_t size = sizeof(VersionTable);
  uint32_t version = kVersion;
  uint32_t reserved = 0;
  void (*set_tool_version)(uint32_t) = [](uint32_t) {};
};

const void* GetExportTable(uint32_t id) {
  static const CallbacksTable callbacks;
  static const VersionTable version;
  if (id == 1) return &callbacks;
  return id == 3 ? &version : nullptr;
}

template <typename T>
T FunctionOf(size_t number) {
  return reinterpret_cast<T>(tables[kCore2].functions[number]);
}

// ── What is named ──

constexpr size_t kMostLabels = 65536;
/// A text that needs more would fill memory if each call had another one.
constexpr size_t kMostBytes = 256;

struct Labels {
  std::mutex mutex;
  std::unordered_map<std::string, uint16_t> numbers;  // Keeps the texts.
  // By number. Written once, before the number is given out.
  std::array<std::atomic<const char*>, kMostLabels> texts{};
  std::unordered_map<uint32_t, RangeId> ranges;
  uint32_t last_range = 0;
};

std::optional<std::string> state;
Domain domain = nullptr;
std::unique_ptr<Labels> labels;

std::string LoadTool(const char* path) {
  void* const library = dlopen(path, RTLD_LAZY);
  if (library == nullptr) return dlerror();
  using Initialize = int (*)(const void* (*)(uint32_t));
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize == nullptr) return std::string(path) + " has no function InitializeInjectionNvtx2";
  for (size_t module = kCore; module <= kSync; ++module) {
    for (size_t n = 1; n < kSizes[module]; ++n) tables[module].places[n] = &tables[module].functions[n];
  }
  // It stays loaded: it may have begun threads.
  if (initialize(GetExportTable) == 0) return std::string(path) + " refused to begin";
  return {};
}

const char* NameOf(protocol::Opcode opcode) {
  switch (opcode) {
    case protocol::Opcode::kLaunch:
      return "launch";
    case protocol::Opcode::kLaunchGraph:
      return "graph";
    case protocol::Opcode::kCopy:
    case protocol::Opcode::kCopyStrided:
    case protocol::Opcode::kCopyBatch:
    case protocol::Opcode::kCopyArray:
      return "copy";
    case protocol::Opcode::kFill:
    case protocol::Opcode::kFillStrided:
      return "fill";
    case protocol::Opcode::kAlloc:
    case protocol::Opcode::kAllocArray:
      return "alloc";
    case protocol::Opcode::kFree:
      return "free";
    case protocol::Opcode::kUploadGraph:
      return "upload graph";
    default:
      return nullptr;
  }
}

}  // namespace

void Load() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const path = std::getenv(sizeof(void*) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH");
    if (path == nullptr || *path == '\0') return;
    state = LoadTool(path);
    if (!state->empty()) return;
    labels = std::make_unique<Labels>();
    if (const auto create = FunctionOf<Domain (*)(const char*)>(kDomainCreate)) domain = create("millrace");
    is_on = true;
  });
}

std::optional<std::string> State() {
  return state;
}

uint16_t Label(std::string_view text) {
  if (!is_on) return 0;
  const std::lock_guard lock(labels->mutex);
  const auto [found, is_new] = labels->numbers.try_emplace(std::string(text.substr(0, kMostBytes)), 0);
  if (!is_new) return found->second;
  if (labels->numbers.size() >= kMostLabels) {
    labels->numbers.erase(found);
    return 0;
  }
  found->second = static_cast<uint16_t>(labels->numbers.size());
  labels->texts[found->second].store(found->first.c_str(), std::memory_order_release);
  return found->second;
}

uint32_t Start(std::string_view text) {
  const auto start = FunctionOf<RangeId (*)(Domain, const Attributes*)>(kRangeStart);
  if (!is_on || start == nullptr) return 0;
  const std::string owned(text);
  Attributes attributes;
  attributes.message = owned.c_str();
  const RangeId id = start(domain, &attributes);
  const std::lock_guard lock(labels->mutex);
  const uint32_t range = ++labels->last_range;
  labels->ranges.emplace(range, id);
  return range;
}

void End(uint32_t range) {
  const auto end = FunctionOf<void (*)(Domain, RangeId)>(kRangeEnd);
  if (!is_on || end == nullptr) return;
  std::optional<RangeId> id;
  {
    const std::lock_guard lock(labels->mutex);
    const auto found = labels->ranges.find(range);
    if (found == labels->ranges.end()) return;
    id = found->second;
    labels->ranges.erase(found);
  }
  end(domain, *id);
}

Range::Range(uint16_t label, protocol::Opcode opcode) {
  if (!is_on) return;
  const auto push = FunctionOf<int (*)(Domain, const Attributes*)>(kRangePush);
  Attributes attributes;
  attributes.message = label == 0 ? NameOf(opcode) : labels->texts[label].load(std::memory_order_acquire);
  if (push == nullptr || attributes.message == nullptr) return;
  push(domain, &attributes);
  is_open_ = true;
}

Range::~Range() {
  if (!is_open_) return;
  if (const auto pop = FunctionOf<int (*)(Domain)>(kRangePop)) pop(domain);
}

}  // namespace millrace::nvtx
