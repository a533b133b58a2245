// Where the bytes of named tensors come from: a checkpoint that is mapped, never loaded. The
// frontend implements it (GGUF, safetensors, random), code generation reads from it.
#ifndef TENON_IR_WEIGHTSOURCE_H
#define TENON_IR_WEIGHTSOURCE_H

#include "ir/Storage.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace tenon {

struct TensorInfo {
  std::string name;
  llvm::SmallVector<int64_t, 4> shape; // row-major, outermost first: a linear is [out, in]
  Storage storage;
};

class WeightSource {
public:
  virtual ~WeightSource() = default;

  // What a message calls it: the file's path.
  virtual llvm::StringRef getName() const = 0;
  // In file order.
  virtual llvm::ArrayRef<TensorInfo> getTensors() const = 0;
  virtual const TensorInfo *find(llvm::StringRef name) const = 0;
  // Rows [first, first + count) of a tensor, counting all but the last dimension as rows;
  // contiguous and valid until the next call for a generated source, for the source's lifetime for
  // a mapped one.
  virtual llvm::ArrayRef<uint8_t> getRows(const TensorInfo &tensor, int64_t first,
                                          int64_t count) = 0;
};

} // namespace tenon

#endif // TENON_IR_WEIGHTSOURCE_H
