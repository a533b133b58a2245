#include "ir/RandomWeights.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/xxhash.h"
#include <cassert>
#include <cmath>
#include <cstring>

using llvm::StringRef;
using llvm::support::endian::write16le;
using llvm::support::endian::write32le;
using llvm::support::endian::write64le;

namespace tenon {

// SplitMix64's finaliser: consecutive inputs give independent outputs.
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}
static constexpr uint64_t golden = 0x9e3779b97f4a7c15;

namespace {
// Elements lie in [centre - radius, centre + radius).
struct Distribution {
  float centre, radius;
};
} // namespace

static Distribution getDistribution(const TensorInfo &tensor) {
  if (tensor.shape.size() > 1)
    return {0.0f, std::sqrt(3.0f / float(tensor.shape.back()))};
  bool isBias = StringRef(tensor.name).ends_with("bias");
  return {isBias ? 0.0f : 1.0f, 0.05f};
}

// Four elements from each draw of 64 bits.
template <size_t bytes, typename Store>
static void fillFloats(uint64_t key, int64_t count, Distribution distribution, uint8_t *row,
                       Store store) {
  float scale = distribution.radius / 32768.0f;
  for (int64_t i = 0; i < count; i += 4) {
    uint64_t draw = mix(key + (i / 4 + 1) * golden);
    for (int64_t j = i; j < std::min(i + 4, count); ++j, draw >>= 16)
      store(row + j * bytes, distribution.centre + float(int16_t(draw)) * scale);
  }
}

// Blocks of uniform codes whose scales (and minima) span the distribution.
static void fillBlocks(uint64_t key, const StorageInfo &storage, int64_t blocks, float radius,
                       uint8_t *row) {
  auto half = [](uint8_t *at, float value) { write16le(at, floatToHalf(value)); };
  int64_t bytes = storage.bytesPerBlock;
  uint8_t draws[216]; // the largest block, in whole draws
  for (int64_t block = 0; block < blocks; ++block, row += bytes) {
    for (int64_t i = 0; i < bytes; i += 8)
      write64le(draws + i, mix(key += golden));
    std::memcpy(row, draws, bytes);
    switch (storage.storage) {
    case Storage::Q4_0:
      half(row, radius / 8.0f);
      break;
    case Storage::Q4_1:
      half(row, radius / 7.5f);
      half(row + 2, -radius);
      break;
    case Storage::Q5_0:
      half(row, radius / 16.0f);
      break;
    case Storage::Q5_1:
      half(row, radius / 15.5f);
      half(row + 2, -radius);
      break;
    case Storage::Q8_0:
      half(row, radius / 128.0f);
      break;
    case Storage::Q2_K:           // four levels: narrower, for the same deviation
      std::memset(row, 0x11, 16); // all group scales and minima are 1
      half(row + 80, radius * 0.516f);
      half(row + 82, radius * 0.775f);
      break;
    case Storage::Q3_K: // from -4 to 3, so group scales alternate: 33 - 32, 31 - 32
      for (int i = 0; i < 12; ++i)
        row[96 + i] = i % 2 ? (i < 8 ? 0xff : 0x55) : (i < 8 ? 0x11 : 0xaa);
      half(row + 108, radius / 4.0f);
      break;
    case Storage::Q4_K:
    case Storage::Q5_K:
      half(row, radius / (storage.storage == Storage::Q4_K ? 7.5f : 15.5f));
      half(row + 2, radius);
      std::memset(row + 4, 0x01, 8); // all group scales and minima are 1
      std::memset(row + 12, 0x11, 4);
      break;
    case Storage::Q6_K:
      std::memset(row + 192, 1, 16);
      half(row + 208, radius / 32.0f);
      break;
    case Storage::IQ4_NL:
      half(row, radius / 125.0f);
      break;
    default:
      llvm_unreachable("not a quantised storage");
    }
  }
}

static void fillRow(uint64_t key, const TensorInfo &tensor, int64_t columns, uint8_t *row) {
  Distribution distribution = getDistribution(tensor);
  switch (tensor.storage) {
  case Storage::F32:
    return fillFloats<4>(key, columns, distribution, row, [](uint8_t *at, float value) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      write32le(at, bits);
    });
  case Storage::F16:
    return fillFloats<2>(key, columns, distribution, row,
                         [](uint8_t *at, float value) { write16le(at, floatToHalf(value)); });
  case Storage::BF16:
    return fillFloats<2>(key, columns, distribution, row,
                         [](uint8_t *at, float value) { write16le(at, floatToBfloat(value)); });
  case Storage::F64:
    llvm_unreachable("no checkpoint has f64");
  default:
    const StorageInfo &storage = getStorageInfo(tensor.storage);
    return fillBlocks(key, storage, columns / storage.valuesPerBlock, distribution.radius, row);
  }
}

RandomWeights::RandomWeights(uint64_t seed, std::vector<TensorInfo> infos)
    : seed(seed), name("random:" + std::to_string(seed)), tensors(std::move(infos)) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    [[maybe_unused]] bool isNew = indices.try_emplace(tensors[i].name, i).second;
    assert(isNew && "two tensors of one name");
  }
}

const TensorInfo *RandomWeights::find(StringRef tensor) const {
  auto found = indices.find(tensor);
  return found == indices.end() ? nullptr : &tensors[found->second];
}

llvm::ArrayRef<uint8_t> RandomWeights::getRows(const TensorInfo &tensor, int64_t first,
                                               int64_t count) {
  int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  int64_t rowBytes = getRowBytes(tensor.storage, columns);
  buffer.resize(count * rowBytes);
  uint64_t tensorKey = mix(llvm::xxh3_64bits(StringRef(tensor.name)) + mix(seed + golden));
  for (int64_t i = 0; i < count; ++i)
    fillRow(mix(tensorKey + (first + i) * golden), tensor, columns, buffer.data() + i * rowBytes);
  return buffer;
}

} // namespace tenon
