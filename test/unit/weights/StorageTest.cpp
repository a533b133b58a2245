// The decoders against an independent reading of the same blocks (data/make-storage.py).
#include "Support.h"
#include "frontend/weights/Gguf.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace tenon {
namespace {

class Golden : public testing::TestWithParam<Storage> {
protected:
  void SetUp() override {
    auto opened = GgufFile::open(TENON_WEIGHTS_DATA_DIR "/storage.gguf");
    ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
    file = std::move(*opened);
    std::string name = getStorageInfo(GetParam()).name.str();
    stored = file->find(name);
    expected = file->find(name + ".values");
    ASSERT_TRUE(stored && expected);
    ASSERT_EQ(stored->storage, GetParam());
    ASSERT_EQ(stored->shape, expected->shape);
    columns = stored->shape[1];
  }

  const uint8_t *row(int64_t i) { return file->getRows(*stored, i, 1).data(); }
  std::vector<float> values(int64_t i) {
    std::vector<float> result(columns);
    decodeRow(Storage::F32, file->getRows(*expected, i, 1).data(), columns, result.data());
    return result;
  }

  std::unique_ptr<GgufFile> file;
  const TensorInfo *stored, *expected;
  int64_t columns;
};

TEST_P(Golden, Rows) {
  for (int64_t i = 0; i < stored->shape[0]; ++i) {
    std::vector<float> result(columns);
    decodeRow(GetParam(), row(i), columns, result.data());
    EXPECT_EQ(result, values(i));
  }
}

TEST_P(Golden, Groups) {
  const StorageInfo &info = getStorageInfo(GetParam());
  if (!info.bits)
    return; // has no groups
  for (int64_t i = 0; i < stored->shape[0]; ++i) {
    std::vector<uint8_t> codes(columns);
    std::vector<float> scales(columns / info.groupSize), mins(scales.size(), 99.0f);
    decodeGroups(GetParam(), row(i), columns, codes.data(), scales.data(), mins.data());
    std::vector<float> result(columns);
    for (int64_t c = 0; c < columns; ++c) {
      int code = info.hasMin ? codes[c] : int8_t(codes[c]);
      int low = info.hasMin ? 0 : -(1 << (info.bits - 1));
      EXPECT_GE(code, low);
      EXPECT_LT(code, low + (1 << info.bits));
      result[c] = scales[c / info.groupSize] * float(code) + mins[c / info.groupSize];
    }
    EXPECT_EQ(result, values(i));
    if (!info.hasMin) {
      EXPECT_THAT(mins, testing::Each(0.0f));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, Golden,
                         testing::Values(Storage::F16, Storage::BF16, Storage::Q4_0, Storage::Q4_1,
                                         Storage::Q5_0, Storage::Q5_1, Storage::Q8_0, Storage::Q2_K,
                                         Storage::Q3_K, Storage::Q4_K, Storage::Q5_K, Storage::Q6_K,
                                         Storage::IQ4_NL),
                         [](const auto &info) { return getStorageInfo(info.param).name.str(); });

TEST(Storage, F64IsRounded) {
  double values[] = {0.1, -3.0};
  float result[2];
  decodeRow(Storage::F64, reinterpret_cast<const uint8_t *>(values), 2, result);
  EXPECT_EQ(result[0], 0.1f);
  EXPECT_EQ(result[1], -3.0f);
}

TEST(Storage, NamesAndSizes) {
  for (int i = 0; i <= int(Storage::F64); ++i) {
    const StorageInfo &info = getStorageInfo(Storage(i));
    EXPECT_EQ(info.storage, Storage(i));
    EXPECT_EQ(parseStorage(info.name), Storage(i));
    EXPECT_EQ(isQuantised(info.storage), info.valuesPerBlock > 1);
  }
  EXPECT_EQ(parseStorage("Q4_1"), std::nullopt);
  EXPECT_EQ(parseStorage(""), std::nullopt);
  EXPECT_EQ(getRowBytes(Storage::Q6_K, 512), 420);
  EXPECT_EQ(getRowBytes(Storage::BF16, 3), 6);
}

TEST(Half, EveryValueSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(bits);
    int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    double magnitude =
        exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    if (exponent < 31) {
      ASSERT_EQ(std::fabs(value), magnitude);
    }
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0);
    ASSERT_EQ(std::isnan(value), (bits & 0x7fff) > 0x7c00);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
    else
      ASSERT_EQ(floatToHalf(value), bits);
  }
}

// Halfway between neighbours the even one wins; an ulp to either side decides.
TEST(Half, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    float low = halfToFloat(bits), high = halfToFloat(bits + 1), middle = (low + high) / 2;
    ASSERT_EQ(floatToHalf(middle), bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(floatToHalf(std::nextafterf(middle, 0.0f)), bits);
    ASSERT_EQ(floatToHalf(std::nextafterf(middle, INFINITY)), bits + 1);
  }
  EXPECT_EQ(floatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(floatToHalf(1e-30f), 0);
}

TEST(Bfloat, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = bfloatToFloat(bits);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(value))));
    else
      ASSERT_EQ(floatToBfloat(value), bits);
  }
  EXPECT_EQ(floatToBfloat(1.0f + 1.0f / 256), 0x3f80); // halfway, to even
  EXPECT_EQ(floatToBfloat(1.0f + 3.0f / 256), 0x3f82);
  EXPECT_EQ(floatToBfloat(std::nextafterf(1.0f + 1.0f / 256, 2.0f)), 0x3f81);
  EXPECT_EQ(floatToBfloat(std::numeric_limits<float>::max()), 0x7f80);
  uint32_t quiet = 0x7f800001; // a NaN whose upper half is infinity
  float nan;
  std::memcpy(&nan, &quiet, 4);
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(nan))));
}

} // namespace
} // namespace tenon
