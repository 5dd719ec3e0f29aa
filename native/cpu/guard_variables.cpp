#include "cpu/guard_variables.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace millrace::cpu {
namespace {

constexpr std::string_view kPrefix = "_ZGV";

/// Copies a structure out of the file. False beyond its end.
template <typename T>
bool CopyAt(const std::string& file, uint64_t offset, T* into) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(into, file.data() + offset, sizeof(T));
  return true;
}

}  // namespace

std::vector<ThreadRange> GuardVariables(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::vector<ThreadRange> found;
  Elf64_Ehdr header;
  if (!CopyAt(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return found;
  for (uint64_t n = 0; n < header.e_shnum; ++n) {
    Elf64_Shdr table;
    Elf64_Shdr names;
    if (!CopyAt(file, header.e_shoff + n * sizeof(table), &table) || table.sh_type != SHT_SYMTAB) continue;
    if (!CopyAt(file, header.e_shoff + uint64_t{table.sh_link} * sizeof(names), &names)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!CopyAt(file, table.sh_offset + at, &symbol)) break;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS) continue;
      if (file.compare(std::min(file.size(), names.sh_offset + symbol.st_name), kPrefix.size(), kPrefix) != 0) continue;
      found.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
    }
  }
  return found;
}

}  // namespace millrace::cpu
