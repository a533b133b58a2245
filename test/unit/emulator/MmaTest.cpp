// mma against a plain product, for every type: a single one in A and in B lands where PTX's
// pictures say, and random matrices multiply.
#include "Emulated.h"
#include "codegen/cuda/kernels/device.h"
#include <cmath>
#include <functional>
#include <random>

using namespace tenon::emulator;

namespace {

struct Type {
  const char *kernel;
  int depth, each; // k of a product, of a register
  bool floats;
  std::function<uint32_t(int, bool isA)> encode; // an integer from -8 to 8, or 0 to 8
  int least;                                     // of A
};

const Type types[] = {
    {"bf16", 16, 2, true, [](int v, bool) { return tk::floatToBf16(float(v)); }, -8},
    {"half", 16, 2, true, [](int v, bool) { return tk::floatToHalf(float(v)); }, -8},
    {"int8", 32, 4, false, [](int v, bool) { return uint32_t(uint8_t(v)); }, -128},
    {"uint8", 32, 4, false, [](int v, bool) { return uint32_t(uint8_t(v)); }, 0},
};

TEST(Mma, IsAProduct) {
  std::mt19937 random(1);
  for (const Type &type : types) {
    SCOPED_TRACE(type.kernel);
    const int K = type.depth, bits = 32 / type.each;
    std::vector<int> a(16 * K), b(K * 8), c(16 * 8);
    bool bytes = !type.floats;
    for (int &v : a)
      v = std::uniform_int_distribution<int>(type.least, !bytes       ? 8
                                                         : type.least ? 127
                                                                      : 255)(random);
    for (int &v : b)
      v = std::uniform_int_distribution<int>(bytes ? -128 : -8, bytes ? 127 : 8)(random);
    for (int &v : c)
      v = std::uniform_int_distribution<int>(-1000, 1000)(random);

    // The fragments, as "PTX ISA: matrix fragments for mma.m16n8k16 / m16n8k32" has them.
    Array<uint32_t> registers(32 * 6), result(32 * 4);
    auto place = [&](int lane, int i) {
      return std::pair{lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2};
    };
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, inGroup = lane % 4;
      for (int i = 0; i < 4 * type.each; ++i) {
        int row = (i / type.each) % 2 == 0 ? group : group + 8;
        int k = inGroup * type.each + i % type.each + (i < 2 * type.each ? 0 : K / 2);
        registers[4 * lane + i / type.each] |= type.encode(a[row * K + k], true)
                                               << i % type.each * bits;
      }
      for (int i = 0; i < 2 * type.each; ++i) {
        int k = inGroup * type.each + i % type.each + (i < type.each ? 0 : K / 2);
        registers[128 + 2 * lane + i / type.each] |= type.encode(b[k * 8 + group], false)
                                                     << i % type.each * bits;
      }
      for (int i = 0; i < 4; ++i) {
        auto [row, column] = place(lane, i);
        int v = c[row * 8 + column];
        result[4 * lane + i] = type.floats ? tk::floatToBits(float(v)) : uint32_t(v);
      }
    }
    ASSERT_EQ(runKernel(type.kernel, {registers.data(), result.data()}), "");
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        auto [row, column] = place(lane, i);
        int want = c[row * 8 + column];
        for (int k = 0; k < K; ++k)
          want += a[row * K + k] * b[k * 8 + column];
        uint32_t got = result[4 * lane + i];
        EXPECT_EQ(type.floats ? int(tk::bitsToFloat(got)) : int(got), want) << row << " " << column;
      }
  }
}

TEST(Conversions, Bf16) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    float v = tk::bf16ToFloat(uint16_t(i));
    EXPECT_EQ(tk::floatToBf16(v), std::isnan(v) ? 0x7fff : i);
  }
  // Half way between two: to the even one.
  EXPECT_EQ(tk::floatToBf16(tk::bitsToFloat(0x3f808000)), 0x3f80);
  EXPECT_EQ(tk::floatToBf16(tk::bitsToFloat(0x3f818000)), 0x3f82);
  EXPECT_EQ(tk::floatToBf16(tk::bitsToFloat(0x3f808001)), 0x3f81);
}

TEST(Conversions, Half) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    int exponent = int(i >> 10 & 31), fraction = int(i & 1023);
    double want = exponent == 0    ? std::ldexp(fraction, -24)
                  : exponent == 31 ? (fraction ? NAN : INFINITY)
                                   : std::ldexp(1024 + fraction, exponent - 25);
    float v = tk::halfToFloat(uint16_t(i));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(v)) << i;
      EXPECT_EQ(tk::floatToHalf(v), 0x7fff);
      continue;
    }
    EXPECT_EQ(v, i & 0x8000 ? -want : want) << i;
    EXPECT_EQ(tk::floatToHalf(v), i);
  }
  EXPECT_EQ(tk::floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(tk::floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(tk::floatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(tk::floatToHalf(std::ldexp(1.0f, -25)), 0); // half way to the smallest
  EXPECT_EQ(tk::floatToHalf(std::ldexp(1.5f, -25)), 1);
  EXPECT_EQ(tk::floatToHalf(1.0f + std::ldexp(1.0f, -11)), 0x3c00);
  EXPECT_EQ(tk::floatToHalf(1.0f + std::ldexp(3.0f, -11)), 0x3c02);
}

TEST(Dot4, SignsOfBytes) {
  EXPECT_EQ(tk::dot4(0x80ff017f, 0x80ff017f, 10), 10 + 16384 + 1 + 1 + 16129);
  EXPECT_EQ(tk::dot4Unsigned(0x80ff017f, 0x80ff017f, 10), 10 - 16384 - 255 + 1 + 16129);
}

} // namespace
