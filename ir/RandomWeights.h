// Weights out of nothing: `--weights random:SEED`, for measuring and for models one has no file of,
// and what the numerical check of passes computes with.
//
// An element depends on the seed, its tensor's name, its row and its column alone: any rows can be
// had in any order. Matrices are uniform with a deviation of 1 / sqrt(columns), so that a product
// keeps the size of its input; vectors are near 1 (gains) or near 0 (biases).
#ifndef TENON_IR_RANDOMWEIGHTS_H
#define TENON_IR_RANDOMWEIGHTS_H

#include "ir/WeightSource.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace tenon {

class RandomWeights final : public WeightSource {
public:
  // Any storage but F64; names must differ.
  RandomWeights(uint64_t seed, std::vector<TensorInfo> tensors);

  llvm::StringRef getName() const override { return name; }
  llvm::ArrayRef<TensorInfo> getTensors() const override { return tensors; }
  const TensorInfo *find(llvm::StringRef name) const override;
  // Valid until the next call.
  llvm::ArrayRef<uint8_t> getRows(const TensorInfo &tensor, int64_t first, int64_t count) override;

private:
  uint64_t seed;
  std::string name;
  std::vector<TensorInfo> tensors;
  llvm::StringMap<size_t> indices;
  std::vector<uint8_t> buffer;
};

} // namespace tenon

#endif // TENON_IR_RANDOMWEIGHTS_H
