#include "cpu/thread_variables.h"

#include <link.h>

namespace millrace::cpu {
namespace {

struct Search {
  uintptr_t of;
  ThreadVariables found;
};

int FindIn(dl_phdr_info* info, size_t, void* to) {
  auto& search = *static_cast<Search*>(to);
  bool is_in = false;
  ThreadVariables own;
  for (unsigned n = 0; n < info->dlpi_phnum; ++n) {
    const auto& header = info->dlpi_phdr[n];
    if (header.p_type == PT_LOAD) is_in = is_in || search.of - info->dlpi_addr - header.p_vaddr < header.p_memsz;
    if (header.p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
    own = {static_cast<const char*>(info->dlpi_tls_data), header.p_memsz};
  }
  if (is_in) search.found = own;
  return is_in ? 1 : 0;
}

}  // namespace

ThreadVariables FindThreadVariables(const void* of) {
  Search search{reinterpret_cast<uintptr_t>(of), {}};
  dl_iterate_phdr(&FindIn, &search);
  return search.found;
}

}  // namespace millrace::cpu
