// Kernels made from their meaning: the `reference` backend's only kind, and the fallback of others.
#ifndef TENON_CODEGEN_DECOMPOSED_H
#define TENON_CODEGEN_DECOMPOSED_H

#include "codegen/KernelLowering.h"
#include "codegen/ProgramEmitter.h"

namespace tenon {

// Kernels of a module, with the row spaces that stages give them.
class DecomposedKernels {
public:
  KernelCall get(sched::StageOp stage, sched::KernelOp kernel);

  bool contains(llvm::StringRef function) const { return requests.contains(function); }
  // Lowers a kernel that `get` named into a module. The MLIR context is in use meanwhile.
  llvm::Error lower(llvm::StringRef function, llvm::Module &module) const;

private:
  llvm::StringMap<KernelToLower> requests; // by function
};

} // namespace tenon

#endif // TENON_CODEGEN_DECOMPOSED_H
