// Shrinks a module that shows a bug, until nothing can be left out.
//
//   embedding ─ norm ─ q, k, v ─ attention ─ ... 30 layers          %q, %k, %v: arguments
//                                                            ─▶     %y = llm.attention %q, %k, %v
//                                                                   return %y
//
// An operation becomes one of its operands or an argument of the function, a fusion its body, a
// result what it is made of. None of these keeps what the module computes.
#ifndef TENON_CODEGEN_REFERENCE_REDUCTION_H
#define TENON_CODEGEN_REFERENCE_REDUCTION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace tenon {

// Replaces `module`, which is interesting, by the smallest interesting one found. Only valid
// modules are asked about.
void reduceModule(mlir::OwningOpRef<mlir::ModuleOp> &module,
                  llvm::function_ref<bool(mlir::ModuleOp)> isInteresting);

// The same for a pipeline of which a pass breaks its promise (NumericalCheck.h): what is left still
// shows that of the same pass. Returns the error that it reports then; refuses a module that shows
// none.
llvm::Expected<std::string> reduceNumerically(mlir::OwningOpRef<mlir::ModuleOp> &module,
                                              llvm::StringRef pipeline);

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_REDUCTION_H
