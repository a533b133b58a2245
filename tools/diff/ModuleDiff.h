// What differs between two modules, told in operations rather than lines:
//
//   @decode
//     in each of 30 layers:
//       - llm.rms_norm
//       - 3 × llm.linear
//       + llm.fused @norm_qkv {rms_norm, linear}
//                                before   after
//       llm.linear                  211     121
//
// Operations are compared within units of the residual stream (tools/graph/GraphModel.h); names of
// values and tensors don't count.
#ifndef TENON_TOOLS_DIFF_MODULEDIFF_H
#define TENON_TOOLS_DIFF_MODULEDIFF_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon::diff {

// Prints the differences; returns whether there are any.
llvm::Expected<bool> compareModules(mlir::ModuleOp before, mlir::ModuleOp after,
                                    llvm::raw_ostream &out);

} // namespace tenon::diff

#endif // TENON_TOOLS_DIFF_MODULEDIFF_H
