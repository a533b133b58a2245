// Remarks about fusions that were not made, through MLIR's remark engine (`--remarks`).
#ifndef TENON_PASSES_REMARKS_H
#define TENON_PASSES_REMARKS_H

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/Twine.h"

namespace tenon {

// `llm-fuse-norm-qkv: not fused: the norm has 2 other users`
inline void emitMissed(mlir::Operation *op, llvm::StringRef pass, const llvm::Twine &why) {
  mlir::remark::missed(op->getLoc(), mlir::remark::RemarkOpts::name("not fused").category(pass))
      << why.str();
}

} // namespace tenon

#endif // TENON_PASSES_REMARKS_H
