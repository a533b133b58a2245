// A second reading of the packed layout, element by element, for tests.
#ifndef TENON_TEST_KERNELS_PACKED_H
#define TENON_TEST_KERNELS_PACKED_H

#include "Kernels.h"
#include "codegen/Packing.h"
#include <algorithm>
#include <cstring>
#include <vector>

template <class T> T readAt(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// W[row][column].
inline float packedElement(tenon::PackedFormat format, int64_t cols, const uint8_t *packed,
                           int64_t row, int64_t column) {
  using tenon::PackedFormat;
  const uint8_t *tile = packed + row / 16 * getPackedTileBytes(format, cols);
  int64_t lane = row % 16, c = column % 32;
  switch (format) {
  case PackedFormat::F32:
    return readAt<float>(tile + column * 64 + lane * 4);
  case PackedFormat::BF16:
  case PackedFormat::F16: {
    auto bits = readAt<uint16_t>(tile + column / 2 * 64 + lane * 4 + column % 2 * 2);
    return format == PackedFormat::BF16 ? tenon::bfloatToFloat(bits) : tenon::halfToFloat(bits);
  }
  case PackedFormat::BF16Rows:
  case PackedFormat::F16Rows: {
    auto bits = readAt<uint16_t>(packed + (row * ((cols + 7) / 8 * 8) + column) * 2);
    return format == PackedFormat::BF16Rows ? tenon::bfloatToFloat(bits) : tenon::halfToFloat(bits);
  }
  case PackedFormat::U4M: {
    const uint8_t *group = tile + column / 32 * 320;
    uint8_t pair = group[64 + c / 8 * 64 + lane * 4 + c % 4];
    int code = c % 8 < 4 ? pair & 15 : pair >> 4;
    return tenon::halfToFloat(readAt<uint16_t>(group + 2 * lane)) * float(code) +
           tenon::halfToFloat(readAt<uint16_t>(group + 32 + 2 * lane));
  }
  case PackedFormat::U4MG16: {
    const uint8_t *group = tile + column / 32 * 384, *scales = group + c / 16 * 64;
    uint8_t pair = group[128 + c / 8 * 64 + lane * 4 + c % 4];
    int code = c % 8 < 4 ? pair & 15 : pair >> 4;
    return tenon::halfToFloat(readAt<uint16_t>(scales + 2 * lane)) * float(code) +
           tenon::halfToFloat(readAt<uint16_t>(scales + 32 + 2 * lane));
  }
  case PackedFormat::U8M: {
    const uint8_t *group = tile + column / 32 * 576;
    return tenon::halfToFloat(readAt<uint16_t>(group + 2 * lane)) *
               float(group[64 + c / 4 * 64 + lane * 4 + c % 4]) +
           tenon::halfToFloat(readAt<uint16_t>(group + 32 + 2 * lane));
  }
  case PackedFormat::S8: {
    const uint8_t *group = tile + column / 32 * 576;
    return readAt<float>(group + 4 * lane) * float(group[64 + c / 4 * 64 + lane * 4 + c % 4] - 128);
  }
  case PackedFormat::S8G16: {
    const uint8_t *group = tile + column / 32 * 640;
    return readAt<float>(group + c / 16 * 64 + 4 * lane) *
           float(group[128 + c / 4 * 64 + lane * 4 + c % 4] - 128);
  }
  default:
    return 0;
  }
}

// The format in which kernels of a level read what is stored in `format`.
inline tenon::PackedFormat formatOn(const Level &level, tenon::PackedFormat format) {
  using tenon::PackedFormat;
  if (level.emulated && format == PackedFormat::BF16)
    return PackedFormat::BF16Rows;
  return level.emulated && format == PackedFormat::F16 ? PackedFormat::F16Rows : format;
}

// Whether matrices of a format are made of stored groups only, so that rows are whole groups.
inline bool needsGroups(tenon::PackedFormat format) {
  using tenon::PackedFormat;
  return format == PackedFormat::U8M || format == PackedFormat::S8G16 ||
         format == PackedFormat::U4MG16;
}

// A random matrix [rows, cols] in a format, made by way of whole groups where the format needs
// them.
inline std::vector<uint8_t> packMatrix(tenon::PackedFormat format, int64_t rows, int64_t cols,
                                       const std::vector<float> &values) {
  using tenon::PackedFormat;
  std::vector<uint8_t> packed(getPackedBytes(format, rows, cols), 0xee);
  int64_t tileBytes = getPackedTileBytes(format, cols);
  for (int64_t r = 0; r < rows; r += 16) {
    int64_t count = std::min<int64_t>(16, rows - r);
    uint8_t *tile = packed.data() + r / 16 * tileBytes;
    if (!needsGroups(format)) {
      packTile(format, count, cols, values.data() + r * cols, tile);
      continue;
    }
    // 5-bit codes with a minimum, or 6-bit signed ones, or 4-bit ones with a minimum; cols must be
    // whole groups.
    bool hasMin = format != PackedFormat::S8G16, nibbles = format == PackedFormat::U4MG16;
    int64_t groupSize = format == PackedFormat::U8M ? 32 : 16, groups = cols / groupSize;
    std::vector<uint8_t> codes(count * cols);
    std::vector<float> scales(count * groups), mins(count * groups);
    for (int64_t i = 0; i < count * cols; ++i) {
      float v = std::clamp(values[r * cols + i] * 10 + 16, 0.0f, 31.0f);
      codes[i] = nibbles ? uint8_t(v / 2) : hasMin ? uint8_t(v) : uint8_t(int8_t(v - 20));
    }
    for (int64_t i = 0; i < count * groups; ++i) {
      scales[i] = 0.01f * float(1 + i % 7);
      mins[i] = -0.05f * float(i % 5);
    }
    tenon::GroupedRows grouped{codes.data(), scales.data(), mins.data(), groupSize, hasMin};
    packTile(format, count, cols, grouped, tile);
  }
  return packed;
}

#endif // TENON_TEST_KERNELS_PACKED_H
