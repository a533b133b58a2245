// Shrinks a module whose pipeline fails the numerical check, until nothing can be left out.
//
//   embedding ─ norm ─ q, k, v ─ attention ─ ... 30 layers          %q, %k, %v: arguments
//                                                            ─▶     %y = llm.attention %q, %k, %v
//                                                                   return %y
#ifndef TENON_CODEGEN_REFERENCE_REDUCTION_H
#define TENON_CODEGEN_REFERENCE_REDUCTION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace tenon {

// The steps: an operation becomes one of its operands or an argument of the function, a fusion its
// body, a result what it is made of. They do not keep what the module computes.
std::vector<std::unique_ptr<mlir::RewritePattern>> makeReductions(mlir::MLIRContext *context);

// Offers them to `mlir-reduce`, whose script decides what is kept.
void registerReductions(mlir::DialectRegistry &registry);

// Replaces `module` by the smallest one found in which the same pass of the pipeline still breaks
// its promise. Returns the error that it reports then, or refuses a module that does not fail.
llvm::Expected<std::string> reduceNumerically(mlir::OwningOpRef<mlir::ModuleOp> &module,
                                              llvm::StringRef pipeline);

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_REDUCTION_H
