// Divisions that trap: the handler decodes the instruction and stores its results.
#include <initializer_list>
#include <vector>

#include "cpu/division_traps.h"
#include "testing.h"

namespace millrace {
namespace {

constexpr uint64_t kOnes = ~uint64_t{0};

struct Case {
  Case(std::initializer_list<int> bytes) {
    for (const int byte : bytes) code.push_back(static_cast<uint8_t>(byte));
    registers[REG_RIP] = reinterpret_cast<greg_t>(code.data());
    registers[REG_RAX] = 0x1122334455667788;
    registers[REG_RDX] = 0x0102030405060708;
  }
  bool Skip() { return cpu::SkipDivision(context); }
  [[nodiscard]] uint64_t At(int place) const { return static_cast<uint64_t>(registers[place]); }
  [[nodiscard]] bool IsBehind() const { return At(REG_RIP) == reinterpret_cast<uint64_t>(code.data() + code.size()); }

  std::vector<uint8_t> code;
  ucontext_t context{};
  greg_t* registers = context.uc_mcontext.gregs;
};

MR_TEST(DivisionsByZeroGiveAllOnesInTheRegistersOfTheirSize) {
  Case words{0xf7, 0xf1};  // div ecx
  MR_EXPECT(words.Skip() && words.IsBehind());
  MR_EXPECT_EQ(words.At(REG_RAX), 0xffffffffu);
  MR_EXPECT_EQ(words.At(REG_RDX), 0xffffffffu);
  Case longs{0x48, 0xf7, 0xfe};  // idiv rsi
  MR_EXPECT(longs.Skip() && longs.IsBehind());
  MR_EXPECT_EQ(longs.At(REG_RAX), kOnes);
  MR_EXPECT_EQ(longs.At(REG_RDX), kOnes);
  Case shorts{0x66, 0xf7, 0xf1};  // div cx
  MR_EXPECT(shorts.Skip() && shorts.IsBehind());
  MR_EXPECT_EQ(shorts.At(REG_RAX), 0x112233445566ffffu);
  MR_EXPECT_EQ(shorts.At(REG_RDX), 0x010203040506ffffu);
  Case bytes{0xf6, 0xf1};  // div cl
  MR_EXPECT(bytes.Skip() && bytes.IsBehind());
  MR_EXPECT_EQ(bytes.At(REG_RAX), 0x112233445566ffffu);
  MR_EXPECT_EQ(bytes.At(REG_RDX), 0x0102030405060708u);
}

MR_TEST(TheSmallestNumberDividedByMinusOneIsItself) {
  Case words{0x41, 0xf7, 0xf8};  // idiv r8d
  words.registers[REG_RAX] = 0x80000000;
  words.registers[REG_RDX] = 0xffffffff;
  words.registers[REG_R8] = 0x77777777ffffffff;
  MR_EXPECT(words.Skip() && words.IsBehind());
  MR_EXPECT_EQ(words.At(REG_RAX), 0x80000000u);
  MR_EXPECT_EQ(words.At(REG_RDX), 0u);
  Case longs{0x49, 0xf7, 0xfb};  // idiv r11
  longs.registers[REG_RAX] = static_cast<greg_t>(uint64_t{1} << 63);
  longs.registers[REG_RDX] = -1;
  longs.registers[REG_R11] = -1;
  MR_EXPECT(longs.Skip() && longs.IsBehind());
  MR_EXPECT_EQ(longs.At(REG_RAX), uint64_t{1} << 63);
  MR_EXPECT_EQ(longs.At(REG_RDX), 0u);
  Case bytes{0xf6, 0xfc};  // idiv ah
  bytes.registers[REG_RAX] = 0xff80;
  MR_EXPECT(bytes.Skip() && bytes.IsBehind());
  MR_EXPECT_EQ(bytes.At(REG_RAX), 0x0080u);
  // The same number without a prefix is spl.
  Case low{0x40, 0xf6, 0xfc};
  low.registers[REG_RSP] = 0xff00;
  MR_EXPECT(low.Skip() && low.IsBehind());
  MR_EXPECT_EQ(low.At(REG_RAX) & 0xffff, 0xffffu);
}

MR_TEST(DivisorsInMemoryAreFound) {
  int32_t numbers[8] = {0, 0, 0, 0, 0, -1, 0, 0};
  const auto at = reinterpret_cast<greg_t>(numbers);
  const auto expect_minus_one = [](Case& tried) {
    tried.registers[REG_RAX] = 0x80000000;
    tried.registers[REG_RDX] = 0xffffffff;
    MR_EXPECT(tried.Skip() && tried.IsBehind());
    MR_EXPECT_EQ(tried.At(REG_RAX), 0x80000000u);
  };
  Case near{0xf7, 0x7d, 0xfc};  // idiv dword [rbp - 4]
  near.registers[REG_RBP] = at + 24;
  expect_minus_one(near);
  Case far{0xf7, 0xbb, 0x14, 0, 0, 0};  // idiv dword [rbx + 20]
  far.registers[REG_RBX] = at;
  expect_minus_one(far);
  Case scaled{0xf7, 0x3c, 0x8b};  // idiv dword [rbx + rcx * 4]
  scaled.registers[REG_RBX] = at;
  scaled.registers[REG_RCX] = 5;
  expect_minus_one(scaled);
  Case high{0x43, 0xf7, 0x7c, 0x85, 0x08};  // idiv dword [r13 + r8 * 4 + 8]
  high.registers[REG_R13] = at;
  high.registers[REG_R8] = 3;
  expect_minus_one(high);
  Case bare{0x42, 0xf7, 0x3c, 0x85, 0, 0, 0, 0};  // idiv dword [r8 * 4 + 0]
  bare.registers[REG_R8] = (at + 20) / 4;
  expect_minus_one(bare);
  Case on_stack{0xf7, 0x7c, 0x24, 0x14};  // idiv dword [rsp + 20]
  on_stack.registers[REG_RSP] = at;
  expect_minus_one(on_stack);
  Case ahead{0xf7, 0x3d, 0x04, 0, 0, 0};  // idiv dword [rip + 4]
  ahead.code.insert(ahead.code.end(), {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff});
  ahead.registers[REG_RIP] = reinterpret_cast<greg_t>(ahead.code.data());
  ahead.registers[REG_RAX] = 0x80000000;
  ahead.registers[REG_RDX] = 0xffffffff;
  MR_EXPECT(ahead.Skip());
  MR_EXPECT_EQ(ahead.At(REG_RIP), reinterpret_cast<uint64_t>(ahead.code.data() + 6));
  MR_EXPECT_EQ(ahead.At(REG_RAX), 0x80000000u);
}

MR_TEST(OtherInstructionsAreLeftAlone) {
  Case trap{0x0f, 0x0b};
  Case product{0xf7, 0xe1};  // mul ecx
  for (Case* tried : {&trap, &product}) {
    MR_EXPECT(!tried->Skip());
    MR_EXPECT_EQ(tried->At(REG_RIP), reinterpret_cast<uint64_t>(tried->code.data()));
    MR_EXPECT_EQ(tried->At(REG_RAX), 0x1122334455667788u);
  }
}

}  // namespace
}  // namespace millrace
