// CPU kernels from outside the tree. They follow runtime/kernel_abi.h, as Tenon's own do.
#ifndef TENON_CODEGEN_CPU_KERNELSET_H
#define TENON_CODEGEN_CPU_KERNELSET_H

#include "codegen/kernels/KernelMatch.h"
#include "llvm/ADT/ArrayRef.h"
#include <functional>

namespace tenon::cpu {

struct KernelSet {
  std::string name;
  KernelMatcher match; // called for every stage
  // LLVM bitcode for a level: "generic", "avx2", "avx512", "avx512bf16" or "amx". Where it is
  // empty, the stage is computed as if the set were not there.
  std::function<llvm::StringRef(llvm::StringRef level)> bitcode;
};

// The set is asked before those registered earlier.
void registerKernels(KernelSet set);
llvm::ArrayRef<KernelSet> getKernelSets(); // in the order of asking

} // namespace tenon::cpu

#endif // TENON_CODEGEN_CPU_KERNELSET_H
