#include "cpu/writable_data.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace millrace::cpu {
namespace {

template <typename T>
bool ReadAt(std::ifstream& file, uint64_t offset, T* into, size_t count) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(into), static_cast<std::streamsize>(count * sizeof(T)));
  return file.good();
}

/// Section names take a few hundred bytes, but a damaged file may declare any size.
constexpr uint64_t kMaxNameBytes = 1 << 20;

/// Sections that only the loader writes, before other code runs.
bool IsOfLoader(std::string_view name) {
  return name.starts_with(".got") || name.starts_with(".data.rel.ro") || name == ".mr_place";
}

}  // namespace

bool HasOwnData(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.is_open() || !ReadAt(file, 0, &header, 1)) return true;
  const bool is_known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                        header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shstrndx < header.e_shnum;
  if (!is_known) return true;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!ReadAt(file, header.e_shoff, sections.data(), sections.size())) return true;
  if (sections[header.e_shstrndx].sh_size > kMaxNameBytes) return true;
  std::string names(sections[header.e_shstrndx].sh_size, '\0');
  if (!ReadAt(file, sections[header.e_shstrndx].sh_offset, names.data(), names.size())) return true;
  for (const Elf64_Shdr& section : sections) {
    const bool is_data = section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS;
    const bool is_written = (section.sh_flags & SHF_WRITE) != 0 && (section.sh_flags & SHF_TLS) == 0;
    if (!is_data || !is_written || section.sh_size == 0) continue;
    if (section.sh_name >= names.size() || !IsOfLoader(names.c_str() + section.sh_name)) return true;
  }
  return false;
}

}  // namespace millrace::cpu
