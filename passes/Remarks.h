// What passes say of the graphs they see, through MLIR's remark engine (`--remarks`).
#ifndef TENON_PASSES_REMARKS_H
#define TENON_PASSES_REMARKS_H

#include "ir/LLM.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/Twine.h"

namespace tenon {

// A fusion that was not made although its parts are there:
// "llm-fuse-norm-qkv: not fused: the norm has 2 other users".
void emitMissed(mlir::Operation *op, llvm::StringRef pass, const llvm::Twine &why,
                llvm::StringRef what = "not fused");
// A change that was made: "llm-mha-to-gqa: done: 9 query heads share 3 key and value heads".
void emitPassed(mlir::Operation *op, llvm::StringRef pass, const llvm::Twine &what);
// "llm-fuse-norm-qkv: fused: rms_norm, linear".
void emitFused(llm::FusedOp fused, llvm::StringRef pass);

// Collects the remarks of a context and prints them, one line for those of equal layers:
//
//   models/architectures/llama.yaml:50:15: layer 0..29: @decode: llm-fuse-norm-qkv: fused: ...
//
// `kinds`: "missed", "passed". They are printed when the context goes.
void printRemarks(mlir::MLIRContext &context, llvm::ArrayRef<std::string> kinds,
                  llvm::raw_ostream &os);

} // namespace tenon

#endif // TENON_PASSES_REMARKS_H
