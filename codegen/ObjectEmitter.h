// LLVM IR to optimised native objects.
#ifndef TENON_CODEGEN_OBJECTEMITTER_H
#define TENON_CODEGEN_OBJECTEMITTER_H

#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace tenon {

struct CpuTarget {
  std::string cpu;      // LLVM's name: "x86-64-v4"
  std::string features; // "+avx512vnni"

  bool operator==(const CpuTarget &other) const {
    return cpu == other.cpu && features == other.features;
  }
};

// Once, before machines are made on several threads.
void initialiseTargets();

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const CpuTarget &target);

// Gives a new module the machine's triple and data layout.
void setTarget(llvm::Module &module, const llvm::TargetMachine &machine);

// Makes everything but `keep` internal, compiles all functions for the target and runs LLVM's
// pipeline.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, const CpuTarget &target,
              llvm::function_ref<bool(const llvm::GlobalValue &)> keep,
              llvm::OptimizationLevel level = llvm::OptimizationLevel::O3);

llvm::Expected<std::string> emitObject(llvm::Module &module, llvm::TargetMachine &machine);
std::string printModule(const llvm::Module &module);

} // namespace tenon

#endif // TENON_CODEGEN_OBJECTEMITTER_H
