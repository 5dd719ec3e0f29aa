#include "cpu/division_traps.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
namespace millrace::cpu {
namespace {

// Maps an instruction's register number to its index in the context.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Division {
  bool is_signed = false;
  unsigned bytes = 4;    // Size of the divisor.
  uint64_t divisor = 0;  // Zero-extended.
  const uint8_t* end = nullptr;
};

uint64_t MaskOf(unsigned bytes) {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
}

uint64_t Read(const void* from, unsigned bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  return value;
}

int64_t ReadSigned(const uint8_t*& at, unsigned bytes) {
  const uint64_t raw = Read(at, bytes);
  at += bytes;
  return bytes == 1 ? static_cast<int8_t>(raw) : static_cast<int32_t>(raw);
}

class Decoder {
 public:
  explicit Decoder(const greg_t* registers)
      : registers_(registers), at_(reinterpret_cast<const uint8_t*>(registers[REG_RIP])) {}

  [[nodiscard]] bool Decode(Division& found) {
    bool is_short = false;
    bool is_of_thread = false;  // Relative to fs or gs, whose bases the context lacks.
    for (; IsPrefix(*at_); ++at_) {
      is_short |= *at_ == 0x66;
      is_of_thread |= *at_ == 0x64 || *at_ == 0x65;
    }
    if ((*at_ & 0xf0) == 0x40) rex_ = *at_++;
    const uint8_t opcode = *at_++;
    const uint8_t form = *at_++;
    const unsigned kind = form >> 3 & 7;
    if ((opcode != 0xf6 && opcode != 0xf7) || (kind != 6 && kind != 7)) return false;
    found.is_signed = kind == 7;
    found.bytes = opcode == 0xf6 ? 1 : (rex_ & 8) != 0 ? 8 : is_short ? 2 : 4;
    if (form >> 6 == 3) {
      found.divisor = RegisterBytes(form & 7, found.bytes);
    } else {
      const void* address = Address(form);
      found.divisor = is_of_thread ? 0 : Read(address, found.bytes);
    }
    found.end = at_;
    return true;
  }

 private:
  static bool IsPrefix(uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 ||
           byte == 0x64 || byte == 0x65;
  }

  [[nodiscard]] uint64_t Register(unsigned number) const {
    return static_cast<uint64_t>(registers_[kRegisters[number]]);
  }

  [[nodiscard]] uint64_t RegisterBytes(unsigned number, unsigned bytes) const {
    // Without a REX prefix, these numbers mean ah, ch, dh and bh.
    if (bytes == 1 && rex_ == 0 && number >= 4) return Register(number - 4) >> 8 & 0xff;
    return Register(number | (rex_ & 1) << 3) & MaskOf(bytes);
  }

  const void* Address(uint8_t form) {
    const unsigned mode = form >> 6;
    unsigned base = form & 7;
    uint64_t address = 0;
    bool has_base = true;
    if (base == 4) {
      const uint8_t scaled = *at_++;
      const unsigned index = (scaled >> 3 & 7) | (rex_ & 2) << 2;
      if (index != 4) address += Register(index) << (scaled >> 6);
      base = scaled & 7;
      has_base = base != 5 || mode != 0;
      if (!has_base) address += static_cast<uint64_t>(ReadSigned(at_, 4));
    } else if (base == 5 && mode == 0) {
      const int64_t displacement = ReadSigned(at_, 4);
      return at_ + displacement;  // Relative to the end of the instruction, which has no immediate.
    }
    if (has_base) address += Register(base | (rex_ & 1) << 3);
    if (mode == 1) address += static_cast<uint64_t>(ReadSigned(at_, 1));
    if (mode == 2) address += static_cast<uint64_t>(ReadSigned(at_, 4));
    return reinterpret_cast<const void*>(address);
  }

  const greg_t* const registers_;
  const uint8_t* at_;
  unsigned rex_ = 0;
};

// Writes part of a register: a write of 4 bytes clears the upper half.
void Write(greg_t& target, uint64_t value, unsigned bytes) {
  const uint64_t kept = bytes == 4 ? 0 : static_cast<uint64_t>(target) & ~MaskOf(bytes);
  target = static_cast<greg_t>(kept | (value & MaskOf(bytes)));
}

}  // namespace

bool SkipDivision(ucontext_t& context) {
  greg_t* const registers = context.uc_mcontext.gregs;
  Division division;
  if (!Decoder(registers).Decode(division)) return false;
  const bool is_by_minus_one = division.is_signed && division.divisor == MaskOf(division.bytes);
  const uint64_t dividend = static_cast<uint64_t>(registers[REG_RAX]);
  const uint64_t quotient = is_by_minus_one ? 0 - dividend : ~uint64_t{0};
  const uint64_t remainder = is_by_minus_one ? 0 : ~uint64_t{0};
  if (division.bytes == 1) {
    Write(registers[REG_RAX], (remainder & 0xff) << 8 | (quotient & 0xff), 2);
  } else {
    Write(registers[REG_RAX], quotient, division.bytes);
    Write(registers[REG_RDX], remainder, division.bytes);
  }
  registers[REG_RIP] = reinterpret_cast<greg_t>(division.end);
  return true;
}

}  // namespace millrace::cpu
#else
// No division traps.
bool millrace::cpu::SkipDivision(ucontext_t&) {
  return false;
}
#endif
