// An NVTX tool for tests: writes what it is told to the file that MILLRACE_TEST_NVTX names, a line for each call.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

using Function = void (*)();

struct Attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
};

struct Callbacks {
  size_t size;
  int (*get_module_table)(int32_t module, Function*** table, unsigned int* size);
};

std::mutex mutex;
thread_local int depth = 0;
uint64_t last_range = 1ull << 40;  // Too large for 32 bits.

void Write(const char* what, const char* text, uint64_t number) {
  const std::lock_guard lock(mutex);
  static FILE* const file = std::fopen(std::getenv("MILLRACE_TEST_NVTX"), "a");
  std::fprintf(file, "%s %llu %s\n", what, static_cast<unsigned long long>(number), text);
  std::fflush(file);
}

const char* TextOf(const Attributes* attributes) {
  const bool is_known =
      attributes->version == 3 && attributes->size == sizeof(Attributes) && attributes->message_type == 1;
  return is_known ? attributes->message : "malformed";
}

void* CreateDomain(const char* name) {
  Write("domain", name, 0);
  return &last_range;
}

int Push(void* domain, const Attributes* attributes) {
  Write(domain == &last_range ? "push" : "push elsewhere", TextOf(attributes), static_cast<uint64_t>(depth));
  return depth++;
}

int Pop(void*) {
  Write("pop", "", static_cast<uint64_t>(--depth));
  return depth;
}

uint64_t Start(void*, const Attributes* attributes) {
  static std::mutex numbers;
  const std::lock_guard lock(numbers);
  Write("start", TextOf(attributes), ++last_range);
  return last_range;
}

void End(void*, uint64_t range) {
  Write("end", "", range);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void* (*get_table)(uint32_t)) {
  if (std::getenv("MILLRACE_TEST_NVTX") == nullptr) return 0;
  const auto* callbacks = static_cast<const Callbacks*>(get_table(1));
  Function** table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->get_module_table(5, &table, &size) == 0 || size != 16) return 0;
  *table[12] = reinterpret_cast<Function>(CreateDomain);
  *table[2] = reinterpret_cast<Function>(Start);
  *table[3] = reinterpret_cast<Function>(End);
  *table[4] = reinterpret_cast<Function>(Push);
  *table[5] = reinterpret_cast<Function>(Pop);
  return table[0] == nullptr && table[16] == nullptr ? 1 : 0;
}
