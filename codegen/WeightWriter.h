// Evaluates the recipes of sched.weight, a tile of rows at a time, straight into a file.
#ifndef TENON_CODEGEN_WEIGHTWRITER_H
#define TENON_CODEGEN_WEIGHTWRITER_H

#include "ir/Sched.h"
#include "ir/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace tenon {

// Rows of a weight as they come out of its recipe, one after another. Conversion to a quantised
// format is left to packing, which quantises: `storage` may be f32 where the type says q8_0.
struct WeightRows {
  Storage storage;
  std::vector<uint8_t> bytes;
};

// Rows [first, first + count) of a plain weight value. A vector is one row.
llvm::Error readWeightRows(mlir::Value weight, WeightSource &source, int64_t first, int64_t count,
                           WeightRows &rows);

// Writes the whole weights section to `out` (which stands at its beginning) and returns its
// checksum (runtime/artefact.h).
llvm::Expected<uint64_t> writeWeights(mlir::ModuleOp module, WeightSource &source,
                                      llvm::raw_ostream &out);

} // namespace tenon

#endif // TENON_CODEGEN_WEIGHTWRITER_H
