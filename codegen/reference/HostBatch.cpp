// See HostBatch.h.
#include "codegen/reference/HostBatch.h"
#include "codegen/KernelLowering.h"
#include <cstring>
#include <numeric>

using namespace mlir;

namespace tenon {

int64_t HostBatch::getContext() const {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
}

int64_t HostBatch::getMemory() const {
  return std::accumulate(memoryLengths.begin(), memoryLengths.end(), int64_t(0));
}

tenon_batch HostBatch::get() const {
  return {int32_t(getTokens()), int32_t(lengths.size()), int32_t(getScored()), maxBlocks,
          ids.data(),           positions.data(),        sequenceOf.data(),    starts.data(),
          lengths.data(),       blockTable.data(),       scoredRows.data(),    types.data(),
          memoryLengths.data(), memoryTable.data(),      memoryMaxBlocks};
}

static float toFloat(const char *at, Type element) {
  if (element.isF32()) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return element.isBF16() ? bfloatToFloat(bits) : halfToFloat(bits);
}

// Element d of the row in a slot of a block of such rows.
static float toFloat(const char *block, llm::CacheType type, bool byElement, int64_t slot,
                     int64_t dim, int64_t d) {
  Type element = type.getElementType();
  int64_t index = byElement ? d * TENON_BLOCK_TOKENS + slot : slot * dim + d;
  if (!type.isQuantised())
    return toFloat(block + index * element.getIntOrFloatBitWidth() / 8, element);
  const char *elements = block + 2 * type.getGroups(dim) * TENON_BLOCK_TOKENS;
  int64_t scale = d / type.groupSize * TENON_BLOCK_TOKENS + slot;
  return float(int8_t(elements[index])) *
         toFloat(block + 2 * scale, type.getScaleType(type.getContext()));
}

HostRows HostCache::getRows(int64_t layer, int half, const HostBatch &batch) const {
  int64_t heads = type.getHeads(), dim = half ? type.getValueDim() : type.getHeadDim();
  // Values lie behind all keys, or are the first elements of them.
  bool inKeys = half == 0 || type.getValuesInKeys();
  int64_t stored = inKeys ? type.getHeadDim() : dim;
  int64_t blockBytes = TENON_BLOCK_TOKENS * type.getRowBytes(stored);
  int64_t blocks = int64_t(layers[layer]->size()) / (TENON_BLOCK_TOKENS * type.getPositionBytes());
  int64_t first = inKeys ? 0 : blocks * TENON_BLOCK_TOKENS * heads * type.getKeyBytes();
  HostRows rows{RowKind::tokens, batch.getTokens(), heads * dim, {}};
  for (int64_t t = 0; t < rows.count; ++t) {
    int32_t position = batch.positions[t];
    int64_t block =
        batch.blockTable[batch.sequenceOf[t] * batch.maxBlocks + position / TENON_BLOCK_TOKENS];
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < dim; ++d)
        rows.data.push_back(
            toFloat(layers[layer]->data() + first + (h * blocks + block) * blockBytes, type,
                    half == 0 && areKeysByElement(type), position % TENON_BLOCK_TOKENS, stored, d));
  }
  return rows;
}

} // namespace tenon
