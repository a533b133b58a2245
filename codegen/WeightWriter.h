// Evaluates the recipes of sched.weight, a tile of rows at a time, straight into a file.
#ifndef TENON_CODEGEN_WEIGHTWRITER_H
#define TENON_CODEGEN_WEIGHTWRITER_H

#include "ir/Sched.h"
#include "ir/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

// Writes the whole weights section to `out` (which stands at its beginning) and returns its
// checksum (runtime/artefact.h).
llvm::Expected<uint64_t> writeWeights(mlir::ModuleOp module, WeightSource &source,
                                      llvm::raw_ostream &out);

} // namespace tenon

#endif // TENON_CODEGEN_WEIGHTWRITER_H
