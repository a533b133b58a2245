// What the readers of checkpoint files share: tensors that lie in mapped memory, found by name.
//
// A file may hold tensors that Tenon cannot read (another type, an empty shape). They don't spoil
// the file: they are not among getTensors(), and explain() says why.
#ifndef TENON_FRONTEND_WEIGHTS_STOREDWEIGHTS_H
#define TENON_FRONTEND_WEIGHTS_STOREDWEIGHTS_H

#include "frontend/weights/MappedFile.h"
#include "ir/WeightSource.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace tenon {

class StoredWeights : public WeightSource {
public:
  llvm::ArrayRef<TensorInfo> getTensors() const final { return tensors; }
  const TensorInfo *find(llvm::StringRef name) const final;
  llvm::ArrayRef<uint8_t> getRows(const TensorInfo &tensor, int64_t first, int64_t count) final;

  struct UnreadableTensor {
    std::string name;
    std::string reason; // "tensor 'x' has type 10 at byte 96; accepted: f32 (0), ..."
  };
  llvm::ArrayRef<UnreadableTensor> getUnreadable() const { return unreadable; }
  // Why find(name) gives nothing though the file has such a tensor; empty if it has none.
  llvm::StringRef explain(llvm::StringRef name) const;

protected:
  // The bytes from `data` on must hold the whole tensor. False if the name is taken.
  bool add(TensorInfo info, const uint8_t *data);
  bool addUnreadable(llvm::StringRef name, const llvm::Twine &reason);

private:
  std::vector<TensorInfo> tensors;
  std::vector<const uint8_t *> data; // of each tensor
  std::vector<UnreadableTensor> unreadable;
  llvm::StringMap<size_t> indices;           // into `tensors`
  llvm::StringMap<size_t> unreadableIndices; // into `unreadable`
};

// All but the last dimension, multiplied; 1 for a scalar.
int64_t countRows(const TensorInfo &tensor);

// The bytes of a whole tensor, or nothing if a row is not whole blocks, a dimension is not positive
// or the product does not fit 63 bits.
std::optional<int64_t> countBytes(const TensorInfo &tensor);

// Whether no two of the ranges [first, second) have a byte in common; otherwise where two do.
std::optional<uint64_t> findOverlap(std::vector<std::pair<uint64_t, uint64_t>> ranges);

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_STOREDWEIGHTS_H
