// The CPU backend: kernels of cpu/kernels, specialised for each shape and instruction set.
#ifndef TENON_CODEGEN_CPU_CPUBACKEND_H
#define TENON_CODEGEN_CPU_CPUBACKEND_H

#include "codegen/Backend.h"

namespace tenon::cpu {

class CpuBackend : public Backend {
public:
  llvm::StringRef getName() const override { return "cpu"; }
  void configure(PipelineOptions &options) const override;
  llvm::Expected<NativeCode> compile(mlir::ModuleOp module, const TargetOptions &options) override;
};

} // namespace tenon::cpu

#endif // TENON_CODEGEN_CPU_CPUBACKEND_H
