#include "frontend/weights/StoredWeights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

using llvm::StringRef;

namespace tenon {

bool StoredWeights::add(TensorInfo info, const uint8_t *bytes) {
  if (unreadableIndices.contains(info.name) ||
      !indices.try_emplace(info.name, tensors.size()).second)
    return false;
  tensors.push_back(std::move(info));
  data.push_back(bytes);
  return true;
}

bool StoredWeights::addUnreadable(StringRef name, const llvm::Twine &reason) {
  if (indices.contains(name) || !unreadableIndices.try_emplace(name, unreadable.size()).second)
    return false;
  unreadable.push_back({name.str(), reason.str()});
  return true;
}

const TensorInfo *StoredWeights::find(StringRef name) const {
  auto found = indices.find(name);
  return found == indices.end() ? nullptr : &tensors[found->second];
}

StringRef StoredWeights::explain(StringRef name) const {
  auto found = unreadableIndices.find(name);
  return found == unreadableIndices.end() ? StringRef() : unreadable[found->second].reason;
}

llvm::ArrayRef<uint8_t> StoredWeights::getRows(const TensorInfo &tensor, int64_t first,
                                               int64_t count) {
  auto found = indices.find(tensor.name);
  assert(found != indices.end() && "not a tensor of this file");
  assert(first >= 0 && count >= 0 && first <= countRows(tensor) - count && "no such rows");
  int64_t rowBytes = getRowBytes(tensor.storage, tensor.shape.empty() ? 1 : tensor.shape.back());
  return {data[found->second] + first * rowBytes, static_cast<size_t>(count * rowBytes)};
}

int64_t countRows(const TensorInfo &tensor) {
  int64_t rows = 1;
  for (int64_t size : llvm::ArrayRef(tensor.shape).drop_back(!tensor.shape.empty()))
    rows *= size;
  return rows;
}

std::optional<int64_t> countBytes(const TensorInfo &tensor) {
  const StorageInfo &storage = getStorageInfo(tensor.storage);
  int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (columns % storage.valuesPerBlock)
    return std::nullopt;
  // The quotient first: the product with the rows counts blocks, whose bytes then must fit.
  int64_t blocks = columns / storage.valuesPerBlock, bytes;
  for (int64_t size : llvm::ArrayRef(tensor.shape).drop_back(!tensor.shape.empty()))
    if (size <= 0 || llvm::MulOverflow(blocks, size, blocks))
      return std::nullopt;
  if (columns <= 0 || llvm::MulOverflow(blocks, storage.bytesPerBlock, bytes))
    return std::nullopt;
  return bytes;
}

std::optional<uint64_t> findOverlap(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  llvm::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return ranges[i].first;
  return std::nullopt;
}

} // namespace tenon
