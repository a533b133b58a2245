// Tensors in a safetensors file, as numbers: what somebody else's implementation computed, and what
// `OUT logits` did.
#ifndef TENON_TOOLS_COMPARE_DUMP_H
#define TENON_TOOLS_COMPARE_DUMP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::compare {

struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

struct Dump {
  std::string path;
  llvm::StringMap<Numbers> tensors;

  // Floating-point and integer tensors; refuses others.
  static llvm::Expected<Dump> read(llvm::StringRef path);
  // Null when there is none.
  const Numbers *find(llvm::StringRef name) const;
};

// Writes the named tensors of `dump`, which are ids and masks, as I64.
llvm::Error writeIntegers(llvm::StringRef path, const Dump &dump,
                          llvm::ArrayRef<llvm::StringRef> names);

// The largest difference in units of max(1, root mean square of `golden`); infinite where one of
// them is not finite. Both have as many values.
double getError(llvm::ArrayRef<double> values, llvm::ArrayRef<double> golden);

} // namespace tenon::compare

#endif // TENON_TOOLS_COMPARE_DUMP_H
