// Kernels made from their meaning: the `reference` backend's only kind, and the fallback of others.
#ifndef TENON_CODEGEN_DECOMPOSED_H
#define TENON_CODEGEN_DECOMPOSED_H

#include "codegen/ProgramEmitter.h"

namespace tenon {

// Lowers kernels of a module on demand, each once for each combination of row spaces.
class DecomposedKernels {
public:
  // Code is linked into `module` as stages ask for it.
  explicit DecomposedKernels(llvm::Module &module) : module(module) {}

  llvm::Expected<KernelCall> get(sched::StageOp stage, sched::KernelOp kernel);

private:
  llvm::Module &module;
  llvm::StringMap<std::string> names; // kernel and spaces → function
};

} // namespace tenon

#endif // TENON_CODEGEN_DECOMPOSED_H
