// IR from files: a .mlir file, or what a compiled executable carries of its own.
#ifndef TENON_TOOLS_MODULES_H
#define TENON_TOOLS_MODULES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace tenon {

// Whether the file is IR text or a compiled executable, by its name and its last bytes.
bool holdsIR(llvm::StringRef path);

// Of an executable the section "llm" or "sched"; a .mlir file is parsed as it is.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readModule(mlir::MLIRContext &context, llvm::StringRef path, llvm::StringRef section = "llm");

} // namespace tenon

#endif // TENON_TOOLS_MODULES_H
