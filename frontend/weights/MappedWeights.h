// What the GGUF and the safetensors reader share: a table of named tensors that point into mapped
// files.
//
//   reader ──add()──▶ tensors [{name, shape, storage}] , data [pointer]
//          ──addUnreadable()──▶ why a tensor that the file has can't be used, told when it is asked
//          for
#ifndef TENON_FRONTEND_WEIGHTS_MAPPEDWEIGHTS_H
#define TENON_FRONTEND_WEIGHTS_MAPPEDWEIGHTS_H

#include "ir/WeightSource.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace tenon {

// Bytes of a whole tensor as stored. None when the last dimension is not a whole number of blocks,
// a dimension is negative, or the product exceeds 63 bits.
std::optional<int64_t> getTensorBytes(Storage storage, llvm::ArrayRef<int64_t> shape);

class MappedWeights : public WeightSource {
public:
  llvm::StringRef getName() const final { return name; }
  llvm::ArrayRef<TensorInfo> getTensors() const final { return tensors; }
  const TensorInfo *find(llvm::StringRef tensor) const final;
  llvm::ArrayRef<uint8_t> getRows(const TensorInfo &tensor, int64_t first, int64_t count) final;

  // Why the file's tensor of this name can't be read ("has type IQ2_XS (17)"); none if it can, or
  // isn't there.
  std::optional<llvm::StringRef> findUnreadable(llvm::StringRef tensor) const;

protected:
  explicit MappedWeights(std::string name) : name(std::move(name)) {}

  // Both return false when the name is taken. The reader has checked that `data` holds the tensor.
  bool add(TensorInfo tensor, const uint8_t *data);
  bool addUnreadable(llvm::StringRef tensor, std::string reason);

private:
  std::string name;
  std::vector<TensorInfo> tensors;
  std::vector<const uint8_t *> data;       // of each tensor
  llvm::StringMap<size_t> indices;         // into both
  llvm::StringMap<std::string> unreadable; // name → reason
};

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_MAPPEDWEIGHTS_H
