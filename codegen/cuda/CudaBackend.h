// The CUDA backend: stages as launches of kernels that NVRTC specialises for their shapes.
#ifndef TENON_CODEGEN_CUDA_CUDABACKEND_H
#define TENON_CODEGEN_CUDA_CUDABACKEND_H

#include "codegen/Backend.h"

namespace tenon::cuda {

class CudaBackend : public Backend {
public:
  llvm::StringRef getName() const override { return "cuda"; }
  void configure(PipelineOptions &options) const override;
  llvm::Expected<NativeCode> compile(mlir::ModuleOp module, const TargetOptions &options) override;
};

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_CUDABACKEND_H
