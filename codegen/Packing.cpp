// The weight packer. Every function addresses one tile by (row, column); the layout's picture is in
// kernels/packed_layout.h.
#include "codegen/Packing.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

namespace tenon {
namespace {

constexpr float LargestHalf = 65504.0f;

uint16_t toFiniteHalf(float value) {
  return floatToHalf(std::clamp(value, -LargestHalf, LargestHalf));
}

template <class T> void put(uint8_t *at, T value) { std::memcpy(at, &value, sizeof value); }

bool isBfloat(PackedFormat format) {
  return format == PackedFormat::BF16 || format == PackedFormat::BF16Rows;
}

// The byte of a tile at which an element of 16 bits begins.
int64_t getShortPlace(PackedFormat format, int64_t cols, int64_t row, int64_t column) {
  int64_t element = tk_is_rows(int32_t(format))
                        ? row * tk_padded_cols(int32_t(format), cols) + column
                        : column / 2 * 2 * TileRows + 2 * row + column % 2;
  return 2 * element;
}

// One group of 32 columns of a tile.
class Group {
public:
  Group(PackedFormat format, uint8_t *tile, int64_t index)
      : format(format), data(tile + index * tk_group_bytes(int32_t(format))) {}

  // Scale and minimum of the columns of `half` (0 or 1; both halves share them unless the format
  // has groups of 16).
  void setScale(int64_t row, int64_t half, float scale) {
    if (tk_has_min(int32_t(format)))
      put(data + tk_half_scales(int32_t(format), half) + 2 * row, toFiniteHalf(scale));
    else
      put(data + tk_half_scales(int32_t(format), half) + 4 * row, scale);
  }
  void setMin(int64_t row, int64_t half, float min) {
    put(data + tk_half_scales(int32_t(format), half) + 32 + 2 * row, toFiniteHalf(min));
  }

  // `code` as stored: unsigned.
  void setCode(int64_t row, int64_t column, uint8_t code) {
    uint8_t *lines = data + tk_scale_bytes(int32_t(format));
    if (tk_has_nibbles(int32_t(format)))
      lines[column / 8 * 64 + row * 4 + column % 4] |= code << (column % 8 / 4 * 4);
    else
      lines[column / 4 * 64 + row * 4 + column % 4] = code;
  }

private:
  PackedFormat format;
  uint8_t *data;
};

// Up to 32 values of one row.
void quantiseSymmetric(Group group, int64_t row, int64_t count, const float *values) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::fabs(values[i]));
  float scale = largest / 127, inverse = largest > 0 ? 127 / largest : 0;
  group.setScale(row, 0, scale);
  for (int64_t i = 0; i < count; ++i)
    group.setCode(row, i, uint8_t(128 + std::lrint(values[i] * inverse)));
}

void quantiseWithMin(Group group, int64_t row, int64_t count, const float *values) {
  auto [low, high] = std::minmax_element(values, values + count);
  // Codes are chosen for the scale and minimum as they will be read back.
  float min = halfToFloat(toFiniteHalf(*low));
  float scale = halfToFloat(toFiniteHalf((*high - min) / 15));
  group.setScale(row, 0, scale);
  group.setMin(row, 0, min);
  for (int64_t i = 0; i < count; ++i) {
    float code = scale > 0 ? std::nearbyint((values[i] - min) / scale) : 0;
    group.setCode(row, i, uint8_t(std::clamp(code, 0.0f, 15.0f)));
  }
}

} // namespace

llvm::StringRef getPackedFormatName(PackedFormat format) {
  switch (format) {
  case PackedFormat::F32:
    return "f32";
  case PackedFormat::BF16:
    return "bf16";
  case PackedFormat::F16:
    return "f16";
  case PackedFormat::U4M:
    return "u4m";
  case PackedFormat::U8M:
    return "u8m";
  case PackedFormat::S8:
    return "s8";
  case PackedFormat::S8G16:
    return "s8g16";
  case PackedFormat::U4MG16:
    return "u4mg16";
  case PackedFormat::PlainF32:
    return "plain_f32";
  case PackedFormat::PlainF64:
    return "plain_f64";
  case PackedFormat::BF16Rows:
    return "bf16_rows";
  case PackedFormat::F16Rows:
    return "f16_rows";
  }
  llvm_unreachable("unknown packed format");
}

std::optional<PackedFormat> parsePackedFormat(llvm::StringRef name) {
  for (int i = TK_F32; i <= TK_F16_ROWS; ++i)
    if (getPackedFormatName(PackedFormat(i)) == name)
      return PackedFormat(i);
  return std::nullopt;
}

int64_t getPackedBytes(PackedFormat format, int64_t rows, int64_t cols) {
  return tk_packed_bytes(int32_t(format), rows, cols);
}

int64_t getPackedTileBytes(PackedFormat format, int64_t cols) {
  return tk_tile_bytes(int32_t(format), cols);
}

PackedFormat getPackedFormat(Storage storage, bool keepRows) {
  switch (storage) {
  case Storage::F32:
    return PackedFormat::F32;
  case Storage::F16:
    return keepRows ? PackedFormat::F16Rows : PackedFormat::F16;
  case Storage::BF16:
    return keepRows ? PackedFormat::BF16Rows : PackedFormat::BF16;
  case Storage::Q4_0:
  case Storage::Q4_1:
  case Storage::Q4_K:
    return PackedFormat::U4M;
  case Storage::Q2_K:
  case Storage::Q3_K:
    return PackedFormat::U4MG16;
  case Storage::Q5_0:
  case Storage::Q8_0:
  case Storage::IQ4_NL:
    return PackedFormat::S8;
  case Storage::Q5_1:
  case Storage::Q5_K:
    return PackedFormat::U8M;
  case Storage::Q6_K:
    return PackedFormat::S8G16;
  case Storage::F64:
    return PackedFormat::PlainF64;
  }
  llvm_unreachable("unknown storage");
}

void packTile(PackedFormat format, int64_t rows, int64_t cols, const float *values, uint8_t *tile) {
  assert(rows >= 1 && rows <= TileRows && "a tile has 16 rows");
  std::memset(tile, 0, getPackedTileBytes(format, cols));
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = values + r * cols;
    switch (format) {
    case PackedFormat::F32:
      for (int64_t c = 0; c < cols; ++c)
        put(tile + (c * TileRows + r) * 4, row[c]);
      break;
    case PackedFormat::BF16:
    case PackedFormat::F16:
    case PackedFormat::BF16Rows:
    case PackedFormat::F16Rows:
      for (int64_t c = 0; c < cols; ++c)
        put(tile + getShortPlace(format, cols, r, c),
            isBfloat(format) ? floatToBfloat(row[c]) : toFiniteHalf(row[c]));
      break;
    case PackedFormat::S8:
    case PackedFormat::U4M:
      for (int64_t c = 0; c < cols; c += TK_GROUP) {
        Group group(format, tile, c / TK_GROUP);
        int64_t count = std::min<int64_t>(TK_GROUP, cols - c);
        if (format == PackedFormat::S8)
          quantiseSymmetric(group, r, count, row + c);
        else
          quantiseWithMin(group, r, count, row + c);
      }
      break;
    default:
      llvm_unreachable("not a format that values are packed to");
    }
  }
}

void packTile(PackedFormat format, int64_t rows, int64_t cols, const GroupedRows &groups,
              uint8_t *tile) {
  assert(rows >= 1 && rows <= TileRows && "a tile has 16 rows");
  assert(cols % groups.groupSize == 0 && "groups are whole");
  std::memset(tile, 0, getPackedTileBytes(format, cols));
  bool unsignedCodes = tk_has_min(int32_t(format)), nibbles = tk_has_nibbles(int32_t(format));
  // What is added to a signed code to store it.
  int bias = groups.hasMin ? 0 : nibbles ? 8 : 128;
  assert((unsignedCodes ? groups.hasMin || nibbles : !groups.hasMin) &&
         "codes that the format cannot hold");
  int64_t perRow = cols / groups.groupSize;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < perRow; ++g) {
      int64_t column = g * groups.groupSize, half = column % TK_GROUP / 16;
      float scale = groups.scales[r * perRow + g];
      Group group(format, tile, column / TK_GROUP);
      group.setScale(r, half, scale);
      if (unsignedCodes)
        group.setMin(r, half, groups.hasMin ? groups.mins[r * perRow + g] : -8 * scale);
    }
    for (int64_t c = 0; c < cols; ++c) {
      uint8_t code = groups.codes[r * cols + c] + bias;
      assert((!nibbles || code < 16) && "a 4-bit code");
      assert((format != PackedFormat::U8M || code < 128) && "a 7-bit code");
      Group(format, tile, c / TK_GROUP).setCode(r, c % TK_GROUP, code);
    }
  }
}

void packTile(PackedFormat format, int64_t rows, int64_t cols, Storage storage,
              const uint8_t *stored, uint8_t *tile) {
  int64_t rowBytes = getRowBytes(storage, cols);
  if (isQuantised(storage) && format == getPackedFormat(storage)) {
    const StorageInfo &info = getStorageInfo(storage);
    int64_t perRow = cols / info.groupSize;
    std::vector<uint8_t> codes(rows * cols);
    std::vector<float> scales(rows * perRow), mins(rows * perRow);
    for (int64_t r = 0; r < rows; ++r)
      decodeGroups(storage, stored + r * rowBytes, cols, codes.data() + r * cols,
                   scales.data() + r * perRow, mins.data() + r * perRow);
    GroupedRows groups{codes.data(), scales.data(), mins.data(), info.groupSize, info.hasMin};
    return packTile(format, rows, cols, groups, tile);
  }
  std::vector<float> values(rows * cols);
  for (int64_t r = 0; r < rows; ++r)
    decodeRow(storage, stored + r * rowBytes, cols, values.data() + r * cols);
  packTile(format, rows, cols, values.data(), tile);
}

namespace {

template <class T> T get(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One element of a group of 32 columns: scale · code + min.
float readGroup(PackedFormat format, const uint8_t *group, int64_t row, int64_t column) {
  const uint8_t *lines = group + tk_scale_bytes(int32_t(format));
  const uint8_t *scales = group + tk_half_scales(int32_t(format), column / 16);
  int64_t place = row * 4 + column % 4;
  int code = tk_has_nibbles(int32_t(format))
                 ? lines[column / 8 * 64 + place] >> (column % 8 / 4 * 4) & 15
                 : lines[column / 4 * 64 + place];
  if (tk_has_min(int32_t(format)))
    return halfToFloat(get<uint16_t>(scales + 2 * row)) * float(code) +
           halfToFloat(get<uint16_t>(scales + 32 + 2 * row));
  return get<float>(scales + 4 * row) * float(code - 128);
}

} // namespace

void unpackTile(PackedFormat format, int64_t rows, int64_t cols, const uint8_t *tile,
                float *values) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      float &value = values[r * cols + c];
      if (format == PackedFormat::F32) {
        value = get<float>(tile + (c * TileRows + r) * 4);
      } else if (isBfloat(format) || format == PackedFormat::F16 ||
                 format == PackedFormat::F16Rows) {
        auto bits = get<uint16_t>(tile + getShortPlace(format, cols, r, c));
        value = isBfloat(format) ? bfloatToFloat(bits) : halfToFloat(bits);
      } else {
        const uint8_t *group = tile + c / TK_GROUP * tk_group_bytes(int32_t(format));
        value = readGroup(format, group, r, c % TK_GROUP);
      }
    }
}

} // namespace tenon
