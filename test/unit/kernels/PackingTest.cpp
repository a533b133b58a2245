// The packer: sizes, round trips of values and groups, padding, and repacking of stored tensors.
#include "Kernels.h"
#include "Packed.h"
#include <cmath>

using namespace tenon;

namespace {

TEST(Packing, Sizes) {
  EXPECT_EQ(getPackedBytes(PackedFormat::F32, 17, 5), 2 * 5 * 64);
  EXPECT_EQ(getPackedBytes(PackedFormat::BF16, 16, 5), 3 * 64);
  EXPECT_EQ(getPackedBytes(PackedFormat::BF16Rows, 17, 5), 32 * 16);
  EXPECT_EQ(getPackedBytes(PackedFormat::U4M, 16, 33), 2 * 320);
  EXPECT_EQ(getPackedBytes(PackedFormat::S8, 1, 32), 576);
  EXPECT_EQ(getPackedBytes(PackedFormat::S8G16, 1, 32), 640);
  EXPECT_EQ(getPackedBytes(PackedFormat::U4MG16, 17, 33), 4 * 384);
  EXPECT_EQ(getPackedBytes(PackedFormat::PlainF64, 1, 12), 96);
}

TEST(Packing, Names) {
  for (int i = TK_F32; i <= TK_F16_ROWS; ++i)
    EXPECT_EQ(parsePackedFormat(getPackedFormatName(PackedFormat(i))), PackedFormat(i));
  EXPECT_FALSE(parsePackedFormat("q4"));
}

TEST(Packing, FloatsRoundTrip) {
  for (auto [rows, cols] : {std::pair{37, 41}, {16, 64}, {1, 1}, {104, 104}}) {
    std::vector<float> values = randomFloats(rows * cols, 5);
    for (auto [format, error] : {std::pair{PackedFormat::F32, 0.0},
                                 {PackedFormat::BF16, 1 / 256.0},
                                 {PackedFormat::F16, 1 / 2048.0},
                                 {PackedFormat::BF16Rows, 1 / 256.0},
                                 {PackedFormat::F16Rows, 1 / 2048.0}}) {
      std::vector<uint8_t> packed = packMatrix(format, rows, cols, values);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
          float want = values[r * cols + c];
          ASSERT_NEAR(packedElement(format, cols, packed.data(), r, c), want,
                      error * std::fabs(want));
        }
    }
  }
}

TEST(Packing, QuantisesWithinHalfAStep) {
  int64_t rows = 19, cols = 100; // the last group has 4 columns
  std::vector<float> values = randomFloats(rows * cols, 6);
  for (int64_t c = 0; c < cols; ++c)
    values[c] = 0, values[cols + c] = 2.5f, values[2 * cols + c] = -1e6f * float(c % 3);
  for (PackedFormat format : {PackedFormat::S8, PackedFormat::U4M}) {
    std::vector<uint8_t> packed = packMatrix(format, rows, cols, values);
    for (int64_t r = 0; r < rows; ++r) {
      if (r == 2 && format == PackedFormat::U4M)
        continue; // out of the range of f16: clamped
      for (int64_t c = 0; c < cols; ++c) {
        const float *group = values.data() + r * cols + c / 32 * 32;
        auto [low, high] =
            std::minmax_element(group, group + std::min<int64_t>(32, cols - c / 32 * 32));
        double step = format == PackedFormat::S8 ? std::max(-*low, *high) / 127.0
                                                 : (*high - *low) / 15.0 + std::fabs(*low) / 1000;
        ASSERT_NEAR(packedElement(format, cols, packed.data(), r, c), values[r * cols + c],
                    0.51 * step + 1e-7)
            << getPackedFormatName(format).str() << " " << r << " " << c;
      }
    }
  }
}

TEST(Packing, PaddingIsZero) {
  for (PackedFormat format : {PackedFormat::F32, PackedFormat::BF16, PackedFormat::F16Rows,
                              PackedFormat::U4M, PackedFormat::S8}) {
    std::vector<uint8_t> packed = packMatrix(format, 5, 35, randomFloats(5 * 35, 1));
    for (int64_t r = 5; r < 16; ++r)
      for (int64_t c = 0; c < 35; ++c)
        ASSERT_EQ(packedElement(format, 35, packed.data(), r, c), 0.0f);
  }
}

TEST(Packing, SignedFourBitCodesGetAMinimum) {
  std::vector<uint8_t> codes(32);
  for (int i = 0; i < 32; ++i)
    codes[i] = uint8_t(int8_t(i % 16 - 8));
  float scale = 0.25f;
  std::vector<uint8_t> tile(getPackedTileBytes(PackedFormat::U4M, 32));
  packTile(PackedFormat::U4M, 1, 32, GroupedRows{codes.data(), &scale, nullptr, 32, false},
           tile.data());
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(packedElement(PackedFormat::U4M, 32, tile.data(), 0, i), 0.25f * float(i % 16 - 8));
}

// Random blocks of every quantised storage: packed as they are, they read back as decodeRow says,
// but for the rounding of scales to f16; packed as f32, exactly.
TEST(Packing, StoredTensors) {
  std::mt19937 generator(3);
  for (Storage storage : {Storage::F32, Storage::F16, Storage::BF16, Storage::Q4_0, Storage::Q4_1,
                          Storage::Q5_0, Storage::Q5_1, Storage::Q8_0, Storage::Q2_K, Storage::Q3_K,
                          Storage::Q4_K, Storage::Q5_K, Storage::Q6_K, Storage::IQ4_NL}) {
    const StorageInfo &info = getStorageInfo(storage);
    SCOPED_TRACE(info.name.str());
    int64_t rows = 13, cols = 512, rowBytes = getRowBytes(storage, cols);
    std::vector<uint8_t> stored(rows * rowBytes);
    // Bytes below 0x3c are finite, positive numbers in every float type.
    for (uint8_t &byte : stored)
      byte = uint8_t(generator() % 0x3c);
    std::vector<uint8_t> plain(getPackedTileBytes(PackedFormat::F32, cols));
    packTile(PackedFormat::F32, rows, cols, storage, stored.data(), plain.data());
    for (bool keepRows : {false, true}) {
      PackedFormat own = getPackedFormat(storage, keepRows);
      std::vector<uint8_t> packed(getPackedTileBytes(own, cols));
      packTile(own, rows, cols, storage, stored.data(), packed.data());
      std::vector<float> want(cols), unpacked(rows * cols);
      unpackTile(own, rows, cols, packed.data(), unpacked.data());
      for (int64_t r = 0; r < rows; ++r) {
        decodeRow(storage, stored.data() + r * rowBytes, cols, want.data());
        for (int64_t c = 0; c < cols; ++c) {
          ASSERT_EQ(packedElement(PackedFormat::F32, cols, plain.data(), r, c), want[c]);
          const float *group = want.data() + c / 32 * 32;
          float largest = 0;
          for (int i = 0; i < 32; ++i)
            largest = std::max(largest, std::fabs(group[i]));
          ASSERT_NEAR(packedElement(own, cols, packed.data(), r, c), want[c], largest * 2e-3) << c;
          ASSERT_EQ(packedElement(own, cols, packed.data(), r, c), unpacked[r * cols + c]) << c;
        }
      }
    }
  }
}

} // namespace
