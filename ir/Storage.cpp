// Decoders for stored tensors. A quantised format is described once, by a function that takes one
// block apart into codes, scales and minima; both readings follow from it. The blocks, where `h` is
// an IEEE half and everything is little-endian:
//
//   q4_0   d h | 16 B codes                                           d * (code - 8)
//   q4_1   d h | m h | 16 B codes                                     d * code + m
//   q5_0   d h | 4 B fifth bits | 16 B codes                          d * (code - 16)
//   q5_1   d h | m h | 4 B fifth bits | 16 B codes                    d * code + m
//   q8_0   d h | 32 int8 codes                                        d * code
//   q2_k   16 B scales, mins | 64 B codes | d h | m h                 d * scale * code - m * min
//   q3_k   32 B third bits | 64 B codes | 12 B scales | d h           d * (scale - 32) * (code - 4)
//   q4_k   d h | m h | 12 B scales, mins | 128 B codes                d * scale * code - m * min
//   q5_k   d h | m h | 12 B as q4_k | 32 B fifth bits | 128 B codes   d * scale * code - m * min
//   q6_k   128 B low nibbles | 64 B upper bits | 16 int8 scales | d h   d * scale * (code - 32)
//   iq4_nl d h | 16 B indices                                         d * levels[index]
#include "ir/Storage.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <cassert>
#include <cstring>

using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

namespace tenon {

static constexpr StorageInfo infos[] = {
    {Storage::F32, "f32", 1, 4, 0, 0, false},
    {Storage::F16, "f16", 1, 2, 0, 0, false},
    {Storage::BF16, "bf16", 1, 2, 0, 0, false},
    {Storage::Q4_0, "q4_0", 32, 18, 4, 32, false},
    {Storage::Q4_1, "q4_1", 32, 20, 4, 32, true},
    {Storage::Q5_0, "q5_0", 32, 22, 8, 32, false},
    {Storage::Q5_1, "q5_1", 32, 24, 8, 32, true},
    {Storage::Q8_0, "q8_0", 32, 34, 8, 32, false},
    {Storage::Q2_K, "q2_k", 256, 84, 4, 16, true},
    {Storage::Q3_K, "q3_k", 256, 110, 4, 16, false},
    {Storage::Q4_K, "q4_k", 256, 144, 4, 32, true},
    {Storage::Q5_K, "q5_k", 256, 176, 8, 32, true},
    {Storage::Q6_K, "q6_k", 256, 210, 8, 16, false},
    {Storage::IQ4_NL, "iq4_nl", 32, 18, 8, 32, false},
    {Storage::F64, "f64", 1, 8, 0, 0, false},
};
static constexpr int64_t maxValuesPerBlock = 256, maxGroupsPerBlock = 16;

const StorageInfo &getStorageInfo(Storage storage) {
  const StorageInfo &info = infos[static_cast<int>(storage)];
  assert(info.storage == storage && "the table follows the enumeration's order");
  return info;
}

std::optional<Storage> parseStorage(llvm::StringRef name) {
  for (const StorageInfo &info : infos)
    if (info.name == name)
      return info.storage;
  return std::nullopt;
}

int64_t getRowBytes(Storage storage, int64_t values) {
  const StorageInfo &info = getStorageInfo(storage);
  assert(values % info.valuesPerBlock == 0 && "a row is whole blocks");
  return values / info.valuesPerBlock * info.bytesPerBlock;
}

//===-------------------------------------------------------------------------------------------------===//
// Floating-point formats
//===-------------------------------------------------------------------------------------------------===//

template <typename To, typename From> static To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

float halfToFloat(uint16_t bits) {
  // Exponent and mantissa land in place; the product corrects the bias and normalises subnormals.
  float magnitude =
      bitCast<float>(uint32_t(bits & 0x7fff) << 13) * bitCast<float>(uint32_t(254 - 15) << 23);
  uint32_t special = magnitude >= 65536.0f ? 0x7f800000 : 0; // infinity or NaN
  return bitCast<float>(bitCast<uint32_t>(magnitude) | special | uint32_t(bits & 0x8000) << 16);
}

uint16_t floatToHalf(float value) {
  uint32_t bits = bitCast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00 | (bits >> 13 & 0x3ff);
  if (bits >= 0x477ff000) // 65520, halfway from the largest half to the next power of two
    return sign | 0x7c00;
  if (bits < 0x38800000) { // below 2^-14: the addition rounds to a multiple of 2^-24
    float sum = bitCast<float>(bits) + 0.5f;
    return sign | (bitCast<uint32_t>(sum) - bitCast<uint32_t>(0.5f));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return sign | ((bits - (uint32_t(127 - 15) << 23)) >> 13);
}

float bfloatToFloat(uint16_t bits) { return bitCast<float>(uint32_t(bits) << 16); }

uint16_t floatToBfloat(float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

//===-------------------------------------------------------------------------------------------------===//
// Blocks of quantised formats
//===-------------------------------------------------------------------------------------------------===//

static float readHalf(const uint8_t *bytes) { return halfToFloat(read16le(bytes)); }

// Low nibbles are the first `count` elements, high nibbles the next.
static void splitNibbles(const uint8_t *packed, int count, uint8_t *codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = packed[i] & 15;
    codes[i + count] = packed[i] >> 4;
  }
}

static void decodeQ4_0(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  scales[0] = readHalf(block);
  splitNibbles(block + 2, 16, codes);
  for (int i = 0; i < 32; ++i)
    codes[i] -= 8;
}

static void decodeQ4_1(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  scales[0] = readHalf(block);
  mins[0] = readHalf(block + 2);
  splitNibbles(block + 4, 16, codes);
}

// Bit i of `bits` is the fifth bit of element i.
static void addFifthBits(uint32_t bits, uint8_t *codes) {
  for (int i = 0; i < 32; ++i)
    codes[i] |= (bits >> i & 1) << 4;
}

static void decodeQ5_0(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  scales[0] = readHalf(block);
  splitNibbles(block + 6, 16, codes);
  addFifthBits(read32le(block + 2), codes);
  for (int i = 0; i < 32; ++i)
    codes[i] -= 16;
}

static void decodeQ5_1(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  scales[0] = readHalf(block);
  mins[0] = readHalf(block + 2);
  splitNibbles(block + 8, 16, codes);
  addFifthBits(read32le(block + 4), codes);
}

static void decodeQ8_0(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  scales[0] = readHalf(block);
  std::memcpy(codes, block + 2, 32);
}

// Codes of two bits: bits 2q and 2q + 1 of byte i are element i of quarter q of their half.
static void splitPairsOfBits(const uint8_t *packed, uint8_t *codes) {
  for (int half = 0; half < 2; ++half)
    for (int quarter = 0; quarter < 4; ++quarter)
      for (int i = 0; i < 32; ++i)
        codes[128 * half + 32 * quarter + i] = packed[32 * half + i] >> 2 * quarter & 3;
}

static void decodeQ2_K(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  float scale = readHalf(block + 80), min = readHalf(block + 82);
  for (int i = 0; i < 16; ++i) {
    scales[i] = scale * float(block[i] & 15);
    mins[i] = -(min * float(block[i] >> 4));
  }
  splitPairsOfBits(block + 16, codes);
}

static void decodeQ3_K(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  float scale = readHalf(block + 108);
  // Bytes 0-7 of the scales: the low nibbles of scales 0 to 7, then, above them, of 8 to 15. The
  // upper two bits of scales i, i + 4, i + 8 and i + 12 lie in byte 8 + i.
  uint8_t factors[16];
  splitNibbles(block + 96, 8, factors);
  for (int i = 0; i < 16; ++i) {
    int upper = block[104 + i % 4] >> 2 * (i / 4) & 3;
    scales[i] = scale * float(int(factors[i] | upper << 4) - 32);
  }
  splitPairsOfBits(block + 32, codes);
  for (int i = 0; i < 256; ++i) // bit g of byte i belongs to element i of 32 of run g
    codes[i] = (codes[i] | (block[i % 32] >> i / 32 & 1) << 2) - 4;
}

// The header that q4_k and q5_k share. Pairs 0 to 3 lie in the low 6 bits of bytes 0-3 (scales) and
// 4-7 (minima); pairs 4 to 7 have their low nibbles in bytes 8-11 and their upper two bits in the
// top of bytes 0-7.
static void decodeScalesAndMins(const uint8_t *block, float *scales, float *mins) {
  float scale = readHalf(block), min = readHalf(block + 2);
  const uint8_t *packed = block + 4;
  for (int i = 0; i < 4; ++i) {
    scales[i] = scale * float(packed[i] & 63);
    mins[i] = -(min * float(packed[i + 4] & 63));
    scales[i + 4] = scale * float((packed[i + 8] & 15) | packed[i] >> 6 << 4);
    mins[i + 4] = -(min * float(packed[i + 8] >> 4 | packed[i + 4] >> 6 << 4));
  }
}

static void decodeQ4_K(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  decodeScalesAndMins(block, scales, mins);
  for (int pair = 0; pair < 4; ++pair)
    splitNibbles(block + 16 + 32 * pair, 32, codes + 64 * pair);
}

static void decodeQ5_K(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
  decodeScalesAndMins(block, scales, mins);
  const uint8_t *fifthBits = block + 16; // bit g of byte i belongs to element i of group g
  for (int pair = 0; pair < 4; ++pair)
    splitNibbles(block + 48 + 32 * pair, 32, codes + 64 * pair);
  for (int group = 0; group < 8; ++group)
    for (int i = 0; i < 32; ++i)
      codes[32 * group + i] |= (fifthBits[i] >> group & 1) << 4;
}

static void decodeQ6_K(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  float scale = readHalf(block + 208);
  for (int i = 0; i < 16; ++i)
    scales[i] = scale * float(static_cast<int8_t>(block[192 + i]));
  for (int half = 0; half < 2; ++half) {
    const uint8_t *upper = block + 128 + 32 * half;
    uint8_t *out = codes + 128 * half;
    splitNibbles(block + 64 * half, 64, out);
    for (int quarter = 0; quarter < 4; ++quarter)
      for (int i = 0; i < 32; ++i) {
        uint8_t &code = out[32 * quarter + i];
        code = (code | (upper[i] >> 2 * quarter & 3) << 4) - 32;
      }
  }
}

static void decodeNonlinear4(const uint8_t *block, uint8_t *codes, float *scales, float *) {
  // Denser around zero, as weights are.
  static constexpr int8_t levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
  scales[0] = readHalf(block);
  splitNibbles(block + 2, 16, codes);
  for (int i = 0; i < 32; ++i)
    codes[i] = static_cast<uint8_t>(levels[codes[i]]);
}

static auto getBlockDecoder(Storage storage)
    -> void (*)(const uint8_t *, uint8_t *, float *, float *) {
  switch (storage) {
  case Storage::Q4_0:
    return decodeQ4_0;
  case Storage::Q4_1:
    return decodeQ4_1;
  case Storage::Q5_0:
    return decodeQ5_0;
  case Storage::Q5_1:
    return decodeQ5_1;
  case Storage::Q8_0:
    return decodeQ8_0;
  case Storage::Q2_K:
    return decodeQ2_K;
  case Storage::Q3_K:
    return decodeQ3_K;
  case Storage::Q4_K:
    return decodeQ4_K;
  case Storage::Q5_K:
    return decodeQ5_K;
  case Storage::Q6_K:
    return decodeQ6_K;
  case Storage::IQ4_NL:
    return decodeNonlinear4;
  case Storage::F32:
  case Storage::F16:
  case Storage::BF16:
  case Storage::F64:
    break;
  }
  llvm_unreachable("floating-point storage has no blocks");
}

//===-------------------------------------------------------------------------------------------------===//
// Rows
//===-------------------------------------------------------------------------------------------------===//

void decodeGroups(Storage storage, const uint8_t *row, int64_t values, uint8_t *codes,
                  float *scales, float *mins) {
  const StorageInfo &info = getStorageInfo(storage);
  auto *decodeBlock = getBlockDecoder(storage);
  assert(values % info.valuesPerBlock == 0 && "a row is whole blocks");
  int64_t groups = info.valuesPerBlock / info.groupSize;
  for (int64_t block = 0; block < values / info.valuesPerBlock; ++block) {
    decodeBlock(row + block * info.bytesPerBlock, codes + block * info.valuesPerBlock,
                scales + block * groups, mins + block * groups);
  }
  if (!info.hasMin)
    std::fill_n(mins, values / info.groupSize, 0.0f);
}

template <typename Code>
static void scaleGroup(const uint8_t *codes, int64_t count, float scale, float min, float *out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = scale * float(static_cast<Code>(codes[i])) + min;
}

static void decodeQuantisedRow(const StorageInfo &info, const uint8_t *row, int64_t values,
                               float *out) {
  auto *decodeBlock = getBlockDecoder(info.storage);
  uint8_t codes[maxValuesPerBlock];
  float scales[maxGroupsPerBlock], mins[maxGroupsPerBlock] = {};
  for (; values > 0; values -= info.valuesPerBlock, row += info.bytesPerBlock) {
    decodeBlock(row, codes, scales, mins);
    for (int64_t first = 0; first < info.valuesPerBlock;
         first += info.groupSize, out += info.groupSize) {
      int64_t group = first / info.groupSize;
      if (info.hasMin)
        scaleGroup<uint8_t>(codes + first, info.groupSize, scales[group], mins[group], out);
      else
        scaleGroup<int8_t>(codes + first, info.groupSize, scales[group], 0.0f, out);
    }
  }
}

void decodeRow(Storage storage, const uint8_t *row, int64_t values, float *out) {
  switch (storage) {
  case Storage::F32:
    std::memcpy(out, row, values * sizeof(float));
    return;
  case Storage::F16:
    for (int64_t i = 0; i < values; ++i)
      out[i] = halfToFloat(read16le(row + 2 * i));
    return;
  case Storage::BF16:
    for (int64_t i = 0; i < values; ++i)
      out[i] = bfloatToFloat(read16le(row + 2 * i));
    return;
  case Storage::F64:
    for (int64_t i = 0; i < values; ++i)
      out[i] = static_cast<float>(bitCast<double>(llvm::support::endian::read64le(row + 8 * i)));
    return;
  default:
    decodeQuantisedRow(getStorageInfo(storage), row, values, out);
  }
}

} // namespace tenon
