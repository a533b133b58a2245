// What weight recipes evaluate to, with random numbers for the checkpoint's tensors.
#ifndef TENON_CODEGEN_REFERENCE_WEIGHTVALUES_H
#define TENON_CODEGEN_REFERENCE_WEIGHTVALUES_H

#include "ir/LLM.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace tenon {

// A tensor's numbers follow from the seed and its name, in the storage that the recipe says it has.
// Quantised and packed weights are read as kernels read them: packed a tile at a time and unpacked,
// so that the numbers carry the rounding and a wrong packing shows.
class WeightValues {
public:
  explicit WeightValues(uint64_t seed) : seed(seed) {}

  // Row-major f32, or f64 for tables; valid until `begin`.
  llvm::Expected<const void *> get(mlir::Value weight);

  // Before a module is looked at: forgets what `weights` lack. Refuses more than fits.
  llvm::Error begin(llvm::ArrayRef<mlir::Value> weights);

private:
  llvm::Error evaluate(mlir::Value weight, std::vector<char> &bytes) const;

  uint64_t seed;
  llvm::StringMap<std::vector<char>> known; // by recipe
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_WEIGHTVALUES_H
